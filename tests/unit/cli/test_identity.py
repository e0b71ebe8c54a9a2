"""`papaver init` and `papaver identity`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from papaver.cli.main import cli

ME = "https://agent.example/agent.json"


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)])


def test_init_makes_what_identity_shows(tmp_path: Path) -> None:
    """The two documents, by URL; no private key is printed."""
    made = _run(tmp_path, "init", ME, "--name", "Dana's agent", "--redirect-uri", "http://127.0.0.1/cb", "--json")
    assert [json.loads(line)["url"] for line in made.stdout.splitlines()] == [ME, "https://agent.example/jwks.json"]
    shown = _run(tmp_path, "identity", "--json")
    metadata, keys = (json.loads(line)["document"] for line in shown.stdout.splitlines())
    assert (metadata["client_id"], metadata["client_name"]) == (ME, "Dana's agent")
    assert metadata["redirect_uris"] == ["http://127.0.0.1/cb"]
    assert metadata["token_endpoint_auth_method"] == "private_key_jwt"
    assert [sorted(key) for key in keys["keys"]] == [["alg", "crv", "kid", "kty", "use", "x", "y"]]
    published = json.loads((tmp_path / "publish" / "agent.json").read_text())
    assert published == metadata


def test_init_again_keeps_what_is_not_given_anew(tmp_path: Path) -> None:
    """A name, and where sign-in comes back to."""
    _run(tmp_path, "init", ME, "--name", "Dana's agent", "--redirect-uri", "http://127.0.0.1/cb")
    _run(tmp_path, "init", ME)
    document = json.loads((tmp_path / "publish" / "agent.json").read_text())
    assert (document["client_name"], document["redirect_uris"]) == ("Dana's agent", ["http://127.0.0.1/cb"])
    _run(tmp_path, "init", ME, "--name", "Kim's", "--redirect-uri", "http://127.0.0.1/other")
    document = json.loads((tmp_path / "publish" / "agent.json").read_text())
    assert (document["client_name"], document["redirect_uris"]) == ("Kim's", ["http://127.0.0.1/other"])


def test_init_says_where_it_lives_and_warns_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, also for a folder that was given as `.`."""
    monkeypatch.chdir(tmp_path)
    done = _run(Path("."), "init", ME)
    assert f"lives in {tmp_path}." in done.stdout
    assert done.stderr == ""


def test_a_client_id_that_is_no_url_says_what_it_has_to_be(tmp_path: Path) -> None:
    """With an example."""
    done = _run(tmp_path, "init", "agent.example")
    assert "the URL has to begin with https://" in done.stderr
    assert "such as https://agent.example/agent.json" in done.stderr


def test_people_are_told_where_to_publish(tmp_path: Path) -> None:
    """Which file belongs at which URL."""
    done = _run(tmp_path, "init", ME)
    assert f"publish {tmp_path / 'publish' / 'agent.json'}  at {ME}" in done.stdout
    assert f'"client_id": "{ME}"' in _run(tmp_path, "identity").stdout


def test_identity_without_a_home_says_how_to_begin(tmp_path: Path) -> None:
    """`papaver init`."""
    done = _run(tmp_path / "none", "identity")
    assert done.exit_code == 1
    assert "next      papaver init " in done.stderr


def test_half_a_certificate_is_a_usage_error(tmp_path: Path) -> None:
    """`--tls-cert` and `--tls-key` belong together."""
    _run(tmp_path, "init", ME)
    (tmp_path / "x.pem").write_text("")
    done = _run(tmp_path, "identity", "--serve", "127.0.0.1:0", "--tls-cert", str(tmp_path / "x.pem"))
    assert done.exit_code == 2


def test_an_address_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    """HOST:PORT."""
    _run(tmp_path, "init", ME)
    for address in ("8443", "host:", "host:99999"):
        done = _run(tmp_path, "identity", "--serve", address)
        assert done.exit_code == 2, address
        assert "expected HOST:PORT" in done.stderr


def test_init_lets_users_come_back_to_this_machine(tmp_path: Path) -> None:
    """On any port of the loopback address, when no other redirect URI is given (4.2, RFC 8252 7.3)."""
    _run(tmp_path, "init", ME)
    document = json.loads((tmp_path / "publish" / "agent.json").read_text())
    assert document["redirect_uris"] == ["http://127.0.0.1/callback"]
