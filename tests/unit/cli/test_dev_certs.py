"""`papaver dev-certs`."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path

from click.testing import CliRunner, Result

from papaver.cli.main import cli


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["dev-certs", *map(str, arguments)])


def test_a_certificate_for_each_host_of_one_authority(tmp_path: Path) -> None:
    """Files that a server takes, and that a client believes who trusts the authority; keys are for their owner."""
    out = tmp_path / "a" / "certs"
    done = _run("Shop.Example", "agent.example", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    authority, *each = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["host"] for one in each] == ["shop.example", "agent.example"]
    client = ssl.create_default_context(cafile=authority["ca_file"])
    assert client.get_ca_certs()
    for one in each:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(one["tls_cert"], one["tls_key"])
        assert stat.S_IMODE(Path(one["tls_key"]).stat().st_mode) == 0o600
    assert "--ca-file" in _run("shop.example", "--out", tmp_path / "b").stdout


def test_what_is_there_stays(tmp_path: Path) -> None:
    """A new authority would make the old certificates worthless."""
    assert _run("shop.example", "--out", tmp_path).exit_code == 0
    before = (tmp_path / "ca.pem").read_bytes()
    done = _run("agent.example", "--out", tmp_path)
    assert done.exit_code == 1
    assert "[certs.nothing-there]" in done.stderr
    assert (tmp_path / "ca.pem").read_bytes() == before


def test_a_url_is_no_host(tmp_path: Path) -> None:
    """And nothing is written for it."""
    done = _run("https://shop.example", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "[certs.host]" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its name."""
    (tmp_path / "file").write_text("")
    done = _run("shop.example", "--out", tmp_path / "file" / "x")
    assert done.exit_code == 1
    assert "[certs.writes]" in done.stderr
