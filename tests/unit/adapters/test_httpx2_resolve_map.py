"""`--resolve` and `--ca-file`: exact, explicit, loud, and never a way round the certificate."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveEntry, ResolveMap
from papaver.protocol.errors import ConfigurationError
from tests.house.tls_site import authority


def test_an_entry_is_exact_in_host_and_port() -> None:
    """Case of the host apart, nothing else is covered."""
    found = ResolveMap.read(["Shop.Example:443=127.0.0.1:8443", "b.example:444=[::1]:9"])
    assert found.find("shop.EXAMPLE", 443) == ResolveEntry("shop.example", 443, "127.0.0.1", 8443)
    assert found.find("b.example", 444) == ResolveEntry("b.example", 444, "::1", 9)
    assert found.find("shop.example", 8443) is None
    assert found.find("www.shop.example", 443) is None
    assert str(found) == "shop.example:443=127.0.0.1:8443,b.example:444=[::1]:9"
    assert (bool(found), bool(ResolveMap())) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "shop.example",
        "shop.example=127.0.0.1",
        "shop.example:443",
        "shop.example:443=127.0.0.1",
        "shop.example:443=localhost:8443",
        "shop.example:443=::1:8443",
        "shop.example:443=[127.0.0.1]:8443",
        "shop.example:0=127.0.0.1:8443",
        "shop.example:443=127.0.0.1:65536",
        "shop.example:443=127.0.0.1:-1",
        "shop.example:44³=127.0.0.1:1",
        ":443=127.0.0.1:8443",
        "*:443=127.0.0.1:8443",
        "*.example:443=127.0.0.1:8443",
        "shop.example:*=127.0.0.1:8443",
        "127.0.0.1:443=127.0.0.1:8443",
        "https://shop.example:443=127.0.0.1:8443",
    ],
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    """No wildcard, no name as target, no address as host."""
    with pytest.raises(ConfigurationError) as caught:
        ResolveMap.read([text])
    assert caught.value.rule == "network.resolve-entry"
    assert "HOST:PORT=ADDR:PORT" in str(caught.value)


@pytest.mark.requirement("papaver-10")
@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]"])
def test_an_entry_leads_to_one_host(address: str) -> None:
    """Neither to every interface nor to a group."""
    with pytest.raises(ConfigurationError) as caught:
        ResolveMap.read([f"shop.example:443={address}:8443"])
    assert caught.value.rule == "network.resolve-to-one-host"


def test_one_name_has_one_target() -> None:
    """The same entry twice is one, another target is a mistake."""
    one = "shop.example:443=127.0.0.1:1"
    assert len(ResolveMap.read([one, one]).entries) == 1
    with pytest.raises(ConfigurationError):
        ResolveMap.read([one, "shop.example:443=127.0.0.1:2"])


def test_flags_count_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are read; where both speak of one thing, the flag decides."""
    environ = {"PAPAVER_RESOLVE": "a.example:443=127.0.0.1:1, b.example:443=127.0.0.1:2,", "PAPAVER_CA_FILE": "env.pem"}
    settings = NetworkSettings.read(["a.example:443=127.0.0.1:9"], "flag.pem", environ=environ)
    assert str(settings.resolve) == "a.example:443=127.0.0.1:9,b.example:443=127.0.0.1:2"
    assert settings.ca_file == Path("flag.pem")
    assert NetworkSettings.read(environ=environ).ca_file == Path("env.pem")
    assert NetworkSettings.read(environ=settings.environ()) == settings
    assert NetworkSettings.read(environ={}) == NetworkSettings()
    assert NetworkSettings().environ() == {}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert NetworkSettings.from_environment() == NetworkSettings.read(environ=environ)


def test_a_ca_file_is_added_to_a_context_that_always_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's own variables for certificates are not asked."""
    path = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    plain = NetworkSettings().trust()
    more = NetworkSettings(ca_file=path).trust()
    for context in (plain, more):
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(more.get_ca_certs()) == len(plain.get_ca_certs()) + 1


@pytest.mark.parametrize("content", [None, "", "not PEM"])
def test_a_ca_file_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    """Absent, empty, or something else."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        NetworkSettings(ca_file=path).trust()
    assert caught.value.rule == "network.ca-file"
    assert str(path) in str(caught.value)


def test_exceptions_are_announced_and_the_rule_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    """One warning for each entry and one for the CA file."""
    NetworkSettings().announce()
    assert caplog.records == []
    resolve = ResolveMap.read(["a.example:443=127.0.0.1:1", "b.example:443=127.0.0.1:2"])
    NetworkSettings(resolve, Path("ca.pem")).announce()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3
