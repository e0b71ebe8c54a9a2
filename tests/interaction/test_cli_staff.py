"""`papaver staff`: the queue and a seat from the command line, on the store of a Company that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from papaver.company.people import Person
from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.pair import echoing
from tests.house.company_tokens import SCOPES, TokenTable
from tests.interop.processes import ROOT, environment, papaver

pytestmark = pytest.mark.anyio

MODULE = f"""
import sys
sys.path.append({str(ROOT)!r})
from papaver.stores.sqlite import SqliteStore
from papaver.testing.pair import echoing
from tests.house.company_tokens import SCOPES, TokenTable

company = echoing(store=SqliteStore("shop.db"), staffed=True, sign_in=TokenTable(), scopes=SCOPES)
"""


@asynccontextmanager
async def queued(folder: Path) -> AsyncGenerator[tuple[CompanyBench, str]]:
    """A running Company in whose store a conversation waits for a person."""
    (folder / "shop.py").write_text(MODULE)
    company = echoing(store=SqliteStore(folder / "shop.db"), staffed=True, sign_in=TokenTable(), scopes=SCOPES)
    async with company_bench(company) as bench:
        conversation: str = (await bench.start("Hello")).json["conversation_id"]
        await bench.idle(conversation)
        await bench.send("POST", f"/{conversation}/handoff", {})
        yield bench, conversation


async def run(folder: Path, *arguments: str) -> Any:
    """The command line to its end."""
    return await asyncio.to_thread(papaver, "staff", *arguments, "shop:company", cwd=folder)


class Terminal:
    """`papaver staff join` with somebody who types."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    @classmethod
    async def open(cls, folder: Path, *arguments: str) -> Terminal:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "papaver.cli", "staff", "join", *arguments, "shop:company", "--json"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env=environment(),
        )
        return cls(process)

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def until(self, words: str) -> dict[str, Any]:
        """The next line that has these words."""
        assert self.process.stdout is not None
        while True:
            line = await self.process.stdout.readline()
            assert line, self.seen
            self.seen.append(json.loads(line))
            if words in line.decode():
                return self.seen[-1]


async def test_the_queue_is_the_running_companys(tmp_path: Path) -> None:
    """For people a table, for scripts a line for each; nobody waits in the end."""
    async with queued(tmp_path) as (bench, conversation):
        shown = await run(tmp_path, "queue")
        assert (shown.returncode, conversation in shown.stdout) == (0, True)
        [line] = (await run(tmp_path, "queue", "--json")).stdout.splitlines()
        row = json.loads(line)
        assert (row["conversation_id"], row["status"], row["person"]) == (conversation, "queued", None)
        await bench.company.people.human_joined(ConversationId(conversation), Person("aut_kim", "Kim"))
        row = json.loads((await run(tmp_path, "queue", "--json")).stdout)
        assert row["person"] == {"id": "aut_kim", "name": "Kim"}
        await bench.company.people.close(ConversationId(conversation))
        assert (await run(tmp_path, "queue")).stdout == "Nobody waits.\n"


async def test_a_queue_that_is_cut_says_so(tmp_path: Path) -> None:
    """On stderr, so that the lines for scripts stay rows."""
    async with queued(tmp_path) as (bench, _):
        (tmp_path / "shop.py").write_text(
            f"{MODULE}\nimport papaver.company.queueing\npapaver.company.queueing.LISTED = 1\n"
        )
        assert "there are more" not in (await run(tmp_path, "queue", "--json")).stderr
        other: str = (await bench.start("Hello")).json["conversation_id"]
        await bench.idle(other)
        await bench.send("POST", f"/{other}/handoff", {})
        shown = await run(tmp_path, "queue", "--json")
        assert len(shown.stdout.splitlines()) == 1
        assert "1 shown, there are more" in shown.stderr


async def test_somebody_joins_talks_asks_and_hands_back(tmp_path: Path) -> None:
    """What is typed is said; what comes is printed; each command is one event; a wrong one is told and ends nothing."""
    async with queued(tmp_path) as (bench, conversation):
        terminal = await Terminal.open(tmp_path, conversation, "--name", "Alex", "--id", "aut_alex")
        joined = await terminal.until('"responder": "human"')
        assert joined["event"]["type"] == "state"
        await bench.say(conversation, "Are you there?")
        await terminal.until("Are you there?")
        terminal.type("Yes, I am Alex.")
        said = (await terminal.until("Yes, I am Alex."))["event"]["message"]
        assert said["author"] == {"type": "human", "id": "aut_alex", "name": "Alex"}
        terminal.type("//not a command")
        assert (await terminal.until("not a command"))["event"]["message"]["text"] == "/not a command"
        for wrong in ("/nonsense", "/user", "/scopes"):
            terminal.type(wrong)
            assert (await terminal.until('"error"'))["error"] == "usage"
        for wrong in ('/scopes no"scope', "/scopes orders:read orders:nope"):
            terminal.type(wrong)
            assert (await terminal.until('"error"'))["error"] == "invalid_scope"
        assert "does not offer orders:nope; it offers: orders:read orders:write" in terminal.seen[-1]["detail"]
        terminal.type("/user To confirm it.")
        assert (await terminal.until("user_requested"))["event"]["reason"] == "To confirm it."
        terminal.type("/scopes orders:read orders:write")
        assert (await terminal.until("authorization"))["event"]["scope"] == "orders:read orders:write"
        terminal.type("/back")
        assert (await terminal.until('"conversation_id"'))["responder"] == "agent"
        assert await terminal.process.wait() == 0


@pytest.mark.parametrize(
    ("typed", "status"), [("/close", "closed"), ("/unavailable We open at nine.", "idle"), (None, "idle")]
)
async def test_each_way_to_end_it(tmp_path: Path, typed: str | None, status: str) -> None:
    """Closed for good, with a word of the Company Agent, or just by the end of the input: nobody is left in it."""
    async with queued(tmp_path) as (bench, conversation):
        terminal = await Terminal.open(tmp_path, conversation, "--name", "Alex")
        await terminal.until('"responder": "human"')
        assert terminal.process.stdin is not None
        if typed is None:
            terminal.process.stdin.close()
        else:
            terminal.type(typed)
        assert (await terminal.until('"conversation_id"'))["status"] == status
        assert await terminal.process.wait() == 0
        page = (await bench.read(conversation)).json
        assert ("We open at nine." in str(page)) is (typed is not None and "nine" in typed)


async def test_one_that_another_has_is_refused_with_the_name(tmp_path: Path) -> None:
    """And an unknown one, with what to type next. For people, on stderr."""
    async with queued(tmp_path) as (bench, conversation):
        await bench.company.people.human_joined(ConversationId(conversation), Person("aut_kim", "Kim"))
        refused = await run(tmp_path, "join", conversation, "--name", "Alex")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "Kim handles this conversation already [people.one-at-a-time]" in refused.stderr
        unknown = await run(tmp_path, "join", "cnv_none", "--name", "Alex", "--json")
        assert json.loads(unknown.stdout)["error"] == "conversation_not_found"


async def test_people_see_who_said_what(tmp_path: Path) -> None:
    """Without `--json`: names in front, events in words, nothing that steers a terminal."""
    async with queued(tmp_path) as (bench, conversation):
        await bench.say(
            conversation,
            "\x1b[2JRed \x07alert",
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "papaver.cli", "staff", "join", conversation, "shop:company", "--name", "Alex"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=tmp_path,
            env=environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"/help\nHello.\n")
        told = ""
        while "Alex (you): Hello." not in told:
            told += (await process.stdout.readline()).decode()
        for said in (
            "Personal Agent: Hello",
            "Company Agent: You said: Hello",
            "(A person took over.)",
            "/scopes SCOPE",
        ):
            assert said in told
        assert "Personal Agent: Red alert" in told
        assert "\x1b" not in told
        process.stdin.close()
        assert await process.wait() == 0
