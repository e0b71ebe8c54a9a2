"""Our two sides opposite an agent and a Company that somebody else wrote, from the specification alone, over TLS."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.processes import Place, papaver, started

HERE = Path(__file__).parent / "second_opinion"
SHOP = "shop.example"
OURS, THEIRS = "https://agent.example/agent.json", "https://agent2.example/agent.json"

COMPANY = """
domain = "shop.example"
name = "Example Shop"
base_url = "https://shop.example/poppy"
handler = "answering:answer"

[limits]
requests_per_user = 600
requests_per_address = 600
"""
HANDLER = """
from papaver.company import Turn

async def answer(turn: Turn) -> str:
    return f"You said: {turn.text}"
"""


@pytest.fixture(name="place", scope="module")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One authority for all tests."""
    return Place.make(tmp_path_factory.mktemp("second"))


@pytest.fixture(name="free_port")
def find_free_port() -> int:
    """For the side that has to be known before it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_their_agent_talks_to_our_company_and_each_of_its_probes_is_refused_as_the_text_says(
    place: Place, free_port: int
) -> None:
    """From discovery to close, with a fault in every part of the Session header in between."""
    (place.folder / "papaver.toml").write_text(COMPANY)
    (place.folder / "answering.py").write_text(HANDLER)
    agent = f"127.0.0.1:{free_port}"
    ours = ["-m", "papaver.cli", "company", "serve", "--json", "--port", 0, *place.tls(SHOP)]
    local = ["--ca-file", place.ca_file, "--resolve", f"agent2.example:443={agent}"]
    with started([*ours, *local], cwd=place.folder) as company:
        port = company.said()["listening"].rpartition(":")[2]
        theirs = [HERE / "agent.py", "--domain", SHOP, "--question", "Where is my order?", "--client-id", THEIRS]
        where = ["--ca-file", place.ca_file, "--resolve", f"{SHOP}:443=127.0.0.1:{port}", "--serve", agent]
        with started([*theirs, *where, *place.tls("agent2.example")]) as process:
            lines: list[dict[str, object]] = []
            while line := process.line():
                lines.append(json.loads(line))
            assert process.process.wait(20) == 0, lines
    assert [line for line in lines if not line["ok"]] == []
    assert lines[-1]["reply"] == "You said: Where is my order?"
    steps = {line.get("step"): line for line in lines}
    assert steps["wait_in_post"]["reply_in_response"] is True
    assert len(steps) > 30


@pytest.fixture(name="their_company")
def run_their_company(place: Place, free_port: int) -> Iterator[tuple[list[object], Path]]:
    """Their Company, and our Personal Agent's documents: the options and the home of `papaver`."""
    home = place.folder / "home"
    assert papaver("init", OURS, "--home", home).returncode == 0
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", home, "--serve", f"127.0.0.1:{free_port}"]
    with started([*serving, *place.tls("agent.example")]) as identity:
        assert identity.said()["listening"] == f"127.0.0.1:{free_port}"
        theirs = [HERE / "company.py", "--domain", SHOP, "--listen", "127.0.0.1:0", *place.tls(SHOP)]
        local = ["--ca-file", place.ca_file, "--resolve", f"agent.example:443=127.0.0.1:{free_port}"]
        with started([*theirs, *local]) as company:
            port = company.line().split()[1]
            assert company.line() == "ready"
            yield ["--resolve", f"{SHOP}:443=127.0.0.1:{port}", "--ca-file", place.ca_file, "--json"], home


def test_our_agent_talks_to_their_company(their_company: tuple[list[object], Path]) -> None:
    """Discovery, a question, the next one in the same conversation, and what is kept of both."""
    options, home = their_company
    found = papaver("discover", SHOP, "--home", home, *options)
    assert found.returncode == 0, found
    assert json.loads(found.stdout)["identifier"] == f"https://{SHOP}"

    first = papaver("ask", SHOP, "Where is my order?", "--home", home, *options)
    assert first.returncode == 0, first
    *events, end = (json.loads(line) for line in first.stdout.splitlines())
    said = [event["event"]["message"] for event in events if event["event"]["type"] == "message"]
    assert [(one["role"], one["text"]) for one in said] == [
        ("user", "Where is my order?"),
        ("company", "You said: Where is my order?"),
    ]
    assert end["status"] == "idle"

    known = ["--conversation", end["conversation_id"]]
    second = papaver("ask", SHOP, "And the other one?", "--as", "human", *known, "--home", home, *options)
    assert second.returncode == 0, second
    *events, after = (json.loads(line) for line in second.stdout.splitlines())
    said = [event["event"]["message"] for event in events if event["event"]["type"] == "message"]
    assert [one["text"] for one in said] == ["And the other one?", "You said: And the other one?"]
    assert said[0]["author"]["type"] == "human"
    assert after["conversation_id"] == end["conversation_id"]
    assert after["cursor"] != end["cursor"]
