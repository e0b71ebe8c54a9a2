"""`papaver company conversations|erase-user`: what is stored about whom, and that it goes."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from papaver.cli.config import find, the_company
from papaver.cli.main import cli
from papaver.company.people import Person
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.conversation.operations import Caller, CompanyCommand, Join, RequestCommand, Start
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.terms import ClientId, ConversationId, MessageId, UserId

ME = "https://agent.example/agent.json"
TOML = 'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nwebsite = true\n'
NOW = datetime(2026, 10, 8, 19, 3, tzinfo=UTC)


@pytest.fixture(name="config")
def write_config(tmp_path: Path) -> Path:
    """A Company with a store of its own, and three conversations of two Users in it."""
    path = tmp_path / "papaver.toml"
    path.write_text(TOML)
    asyncio.run(_fill(path))
    return path


async def _fill(path: Path) -> None:
    company = the_company(find(path, None))
    await company.store.open()
    tables = await company.store.tables(company.id)
    ids = EventIds(tables.secret)

    async def do(command: RequestCommand | CompanyCommand) -> None:
        await tables.log.apply(operations.keys(command), lambda loaded: decide(command, loaded, NOW, ids))

    for count, user in enumerate(("dana", "dana", "sam")):
        said = Message(MessageId(f"msg_{count}"), Author(AuthorType.AGENT), text="My secret question")
        caller = Caller(ClientId(ME), UserId(user))
        await do(Start(caller, ConversationId(f"cnv_{count}"), said))
    await do(Join(ConversationId("cnv_2"), Person("aut_alex", "Alex")))
    await company.store.close()


def _run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["company", *arguments, "--config", str(config)])


def _rows(config: Path, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _run(config, "conversations", "--json", *arguments).stdout.splitlines()]


def test_conversations_are_listed_without_what_was_said(config: Path) -> None:
    """Whose each is, how it stands, and how much is kept."""
    rows = _rows(config)
    assert [(row["conversation_id"], row["user_id"], row["status"], row["person"]) for row in rows] == [
        ("cnv_0", "dana", "working", None),
        ("cnv_1", "dana", "working", None),
        ("cnv_2", "sam", "idle", "Alex"),
    ]
    assert (rows[2]["events"], rows[2]["changed_at"]) == (2, "2026-10-08T19:03:00+00:00")
    told = _run(config, "conversations")
    assert "idle, Alex" in told.stdout
    assert "secret question" not in told.output


def test_those_of_one_user_or_the_first_few(config: Path) -> None:
    """A User ID means something at one client only."""
    assert [row["conversation_id"] for row in _rows(config, "--client", ME, "--user", "sam")] == ["cnv_2"]
    assert _rows(config, "--client", "https://other.example/agent.json") == []
    assert [row["conversation_id"] for row in _rows(config, "--limit", "2")] == ["cnv_0", "cnv_1"]
    assert "more than 2" in _run(config, "conversations", "--limit", "2").stderr
    assert _run(config, "conversations", "--user", "sam").exit_code == 2


def test_erasure_takes_all_of_one_user_and_nothing_else(config: Path) -> None:
    """It says how much that was; again there is nothing."""
    done = _run(config, "erase-user", ME, "dana", "--yes", "--json")
    assert json.loads(done.stdout) == {
        "client_id": ME,
        "user_id": "dana",
        "conversations": 2,
        "events": 2,
        "sessions": 0,
    }
    assert [row["conversation_id"] for row in _rows(config)] == ["cnv_2"]
    assert "nothing was there" in _run(config, "erase-user", ME, "dana", "--yes").stderr


def test_nothing_is_erased_unasked(config: Path) -> None:
    """Without a terminal and without --yes the answer is no."""
    done = _run(config, "erase-user", ME, "dana")
    assert done.exit_code == 1
    assert "--yes" in done.stderr
    assert len(_rows(config)) == 3


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    """And no line for scripts."""
    config = tmp_path / "papaver.toml"
    config.write_text(TOML)
    assert _run(config, "conversations").stdout == "There are no conversations.\n"
    assert _rows(config) == []
