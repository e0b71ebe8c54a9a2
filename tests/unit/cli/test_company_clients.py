"""`papaver company clients|allow|block`: verdicts in the Company's store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from papaver.cli.config import find, the_company
from papaver.cli.main import cli
from papaver.protocol.terms import ClientId

ME = "https://agent.example/agent.json"
TOML = 'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nwebsite = true\n'


@pytest.fixture(name="config")
def write_config(tmp_path: Path) -> Path:
    """A Company without a handler; its store is made at the first use."""
    path = tmp_path / "papaver.toml"
    path.write_text(TOML)
    return path


def _run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["company", *arguments, "--config", str(config)])


def _rows(config: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _run(config, "clients", "--json").stdout.splitlines()]


def test_nobody_has_been_here(config: Path) -> None:
    """An empty list is told to people, and is no line for scripts."""
    assert _run(config, "clients").stdout == "No Personal Agent has been here yet.\n"
    assert _rows(config) == []


def test_a_verdict_is_noted_and_may_change(config: Path) -> None:
    """The last word counts."""
    assert _run(config, "allow", ME).stdout == f"{ME} is allowed at https://shop.example from its next request on.\n"
    assert "not seen here yet" in _run(config, "allow", ME).stderr
    assert _rows(config) == [{"client_id": ME, "verdict": "allowed", "seen_at": None}]
    assert json.loads(_run(config, "block", ME, "--json").stdout) == {"client_id": ME, "verdict": "blocked"}
    assert [row["verdict"] for row in _rows(config)] == ["blocked"]


def test_who_was_here_is_listed_with_its_time(config: Path) -> None:
    """Also those without a verdict."""

    async def seen() -> None:
        company = the_company(find(config, None))
        await company.store.open()
        await (await company.store.tables(company.id)).clients.seen(ClientId(ME), 1_790_000_000.0)
        await company.store.close()

    asyncio.run(seen())
    assert _rows(config) == [{"client_id": ME, "verdict": None, "seen_at": "2026-09-21T14:13:20+00:00"}]
    heading, row = _run(config, "clients").stdout.splitlines()
    assert heading.split() == ["client_id", "verdict", "last", "seen"]
    assert row.split() == [ME, "-", "2026-09-21T14:13:20+00:00"]


def test_what_can_be_no_client_id_is_refused(config: Path) -> None:
    """A verdict on it would never apply."""
    done = _run(config, "block", "agent.example")
    assert done.exit_code == 1
    assert "[client.client-id-form]" in done.stderr
