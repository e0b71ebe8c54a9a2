"""The outside services: one test for each, so that an absent one shows; and what `needs` does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from textwrap import dedent

import pytest

from tests.house.services import SERVICES, absent, address, program

PLUGIN = ("-p", "tests.house.services", "-p", "no:cacheprovider", "-p", "no:anyio")
NEEDY = """
    import pytest

    @pytest.mark.needs("redis")
    def test_it():
        pass
"""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.needs(name)) for name in SERVICES])
def test_service_is_here(name: str) -> None:
    """The service answers; left out where it is absent, failed where it is required."""
    assert absent(name) == ""


@pytest.fixture
def without_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing listens where Redis is looked for, and nothing is required."""
    monkeypatch.setenv("PAPAVER_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.delenv("PAPAVER_REQUIRE", raising=False)
    absent.cache_clear()
    yield
    absent.cache_clear()


@pytest.mark.usefixtures("without_redis")
def test_a_needy_test_is_left_out_and_the_summary_says_so(pytester: pytest.Pytester) -> None:
    """Without the service the test is skipped, and the end names service, count and remedy."""
    (pytester.path / "test_it.py").write_text(dedent(NEEDY))
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*absent services*", "Redis: 127.0.0.1:1*1 test left out; start one*"])


@pytest.mark.usefixtures("without_redis")
@pytest.mark.parametrize("required", ["all", "node,redis"])
def test_a_required_service_that_is_absent_fails_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str
) -> None:
    """PAPAVER_REQUIRE turns absence into failure, for all services or for those it lists."""
    monkeypatch.setenv("PAPAVER_REQUIRE", required)
    (pytester.path / "test_it.py").write_text(dedent(NEEDY))
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Redis is required (PAPAVER_REQUIRE) and absent*"])


def test_an_unknown_service_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """A marker with a misspelt service stops the run instead of always passing."""
    (pytester.path / "test_it.py").write_text(dedent(NEEDY.replace("redis", "rediss")))
    result = pytester.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown services*", "*test_it: rediss"])


def test_a_port_that_speaks_another_protocol_is_not_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else on the port does not count as Redis."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        monkeypatch.setenv("PAPAVER_REDIS_URL", f"redis://127.0.0.1:{port}")

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"220 mail\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert SERVICES["redis"].probe() == f"127.0.0.1:{port} speaks another protocol"
        thread.join()


def test_an_address_is_the_variable_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL without a port takes the port of the default."""
    monkeypatch.delenv("PAPAVER_REDIS_URL", raising=False)
    assert address("PAPAVER_REDIS_URL", "redis://127.0.0.1:6379") == ("127.0.0.1", 6379)
    monkeypatch.setenv("PAPAVER_REDIS_URL", "redis://cache.example")
    assert address("PAPAVER_REDIS_URL", "redis://127.0.0.1:6379") == ("cache.example", 6379)


def test_a_named_program_is_not_searched_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment variable that names a missing program means: absent."""
    monkeypatch.setenv("PAPAVER_NODE", "/nowhere/node")
    assert program("PAPAVER_NODE", "sh") is None
    assert SERVICES["node"].probe() == "not found"
