"""The main job: `papaver demo` as a user runs it, with a Company that lies, and told to end in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.processes import environment, papaver, started

LYING = """
    import papaver.demo.outfitter.agents as agents

    true = agents.answer_turn
    agents.answer_turn = lambda shop, turn: true(shop, turn).replace("$", "$1")
"""
SABOTEURS = {
    "records a retry again": (
        """
    import re
    from papaver.adapters import asgi

    whole, seen = asgi._Body.read, set()

    async def read(self, limit):
        body = await whole(self, limit)
        found = re.search(rb'"id":"([^"]+)"', body)
        if found and found[1] in seen:
            return body.replace(found[1], found[1] + b"_again")
        seen.add(found and found[1])
        return body

    asgi._Body.read = read
""",
        7,
        "there is one answer|and answered once",
    ),
    "answers twice after the kill": (
        """
    from dataclasses import replace
    from papaver.company.turn import Turn

    once = Turn.outcome

    def twice(self, messages):
        again = [replace(one, id=one.id + "_again") for one in messages] if self.attempt > 1 else []
        return once(self, (*messages, *again))

    Turn.outcome = twice
""",
        8,
        "there is one answer",
    ),
    "streams another message": (
        """
    from dataclasses import replace
    from papaver.stores.deltas import LocalDeltas

    publish = LocalDeltas.publish
    LocalDeltas.publish = lambda self, at, delta: publish(self, at, replace(delta, message_id="cm_other"))
""",
        9,
        "the answer has the id of its pieces",
    ),
    "answers for its people": (
        """
    from papaver.company.people import AGENT, People

    post = People.post

    async def unsigned(self, conversation, text, *, author=AGENT, key=None, person_id=None):
        return await post(self, conversation, text, author=AGENT, key=key, person_id=person_id)

    People.post = unsigned
""",
        11,
        "once",
    ),
    "never asks for the User": (
        """
    from papaver.company.turn import Turn

    Turn.request_user = lambda self, reason: None
""",
        12,
        "the Company asks for the User, once",
    ),
    "puts other words on the card": (
        """
    from papaver.demo.outfitter.database import Shop

    write = Shop.write_gift_card
    Shop.write_gift_card = lambda self, key, text: write(self, key, text.upper())
""",
        12,
        "exactly one such row",
    ),
    "answers about an order without access": (
        """
    from papaver.company.turn import Turn

    Turn.require = lambda self, *scopes: "acct_1"
""",
        13,
        "the Company asks for access, once",
    ),
    "goes on after a disconnect": (
        """
    from papaver.ports.grants import GrantRow

    GrantRow.stands = lambda self, now: True
""",
        17,
        "the next call is signed out",
    ),
    "does not close": (
        """
    from papaver.protocol.conversation import decide as d

    close = d.close
    d.close = lambda draft, loaded, *rest: () if loaded.parent is None else close(draft, loaded, *rest)
""",
        16,
        "the conversation is closed",
    ),
    "says that it closed, and goes on": (
        """
    from dataclasses import replace
    from papaver.protocol.conversation import decide as d

    close, answered, opened = d.close, d._answered, []

    def only_said(draft, loaded, *rest):
        if loaded.parent is not None:
            return close(draft, loaded, *rest)
        opened.append(draft)
        return ()

    def say(draft, *rest):
        told = answered(draft, *rest)
        return replace(told, status=d.Status.CLOSED) if draft in opened else told

    d.close, d._answered = only_said, say
""",
        16,
        "a further message is refused",
    ),
}
"""What each does in the Company's process, in which step the demo notices, and what it says then."""
STEPS = [
    "Start a shop and a Personal Agent",
    "Discover shop.example",
    "Open a Session, and ask the first question",
    "Ask about another row, drawn at random",
    "Ask about another row, drawn at random",
    "Change that article in the shop's database, and ask the same again",
    "Send a message twice with one id, as after a lost answer",
    "Kill the Company while it works on an answer, start it again, and resume",
    "Hear an answer while it is still written",
    "Kill the Company in the middle of a streamed answer",
    "Ask for a person, who answers at the staff console",
    "The Company asks for the User, who says yes: a Direct Conversation",
    "Ask about an order, and sign in for the answer",
    "Ask for an exchange, which needs more: step up",
    "Call the shop's own API with the same access",
    "Close the conversation",
    "Disconnect the Personal Agent on the Company's page",
]
BROWSERS = {"forms": "plain HTTP forms", "chromium": "headless Chromium"}


def sabotaged(tmp_path: Path, source: str) -> subprocess.CompletedProcess[str]:
    """The demo with a Company in whose process this source runs first; its temporary files are gone afterwards."""
    (tmp_path / "sabotage").mkdir()
    (tmp_path / "sabotage" / "sitecustomize.py").write_text(f"import sys\n\nif 'serve' in sys.argv:{source}")
    path = os.pathsep.join([str(tmp_path / "sabotage"), environment()["PYTHONPATH"]])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    told = {"PYTHONPATH": path, "TMPDIR": str(temporary), "PATH": os.devnull}
    done = papaver("demo", "--seed", 7, "--json", env=told)
    assert list(temporary.iterdir()) == []
    return done


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("3.2-02", "3.2-03", "8.1-01")
@pytest.mark.parametrize("browser", ["forms", pytest.param("chromium", marks=pytest.mark.needs("chromium"))])
def test_every_step_is_verified_and_nothing_is_left_behind(tmp_path: Path, browser: str) -> None:
    """Questions, an UPDATE, a retry, two kills, a person, the User, a sign-in, an exchange, a close, a disconnect."""
    hidden = {"PATH": os.devnull} if browser == "forms" else {}
    done = papaver("demo", "--seed", 7, env={"TMPDIR": str(tmp_path), **hidden})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"with {BROWSERS[browser]}") == 3
    titles = re.findall(r"^(\d+)\. (.*)$", done.stdout, re.MULTILINE)
    assert titles == [(str(number), title) for number, title in enumerate(STEPS, 1)]
    assert done.stdout.splitlines()[0].startswith("papaver demo, seed 7:")
    assert done.stdout.splitlines()[-1] == "All 17 steps were verified."
    assert done.stdout.count("so does the answer") == 11
    assert done.stdout.count("SIGKILL to process") == 2
    assert list(tmp_path.iterdir()) == []
    pids = {int(pid) for pid in re.findall(r"process (\d+)", done.stdout)}
    assert len(pids) == 4
    assert [pid for pid in pids if _alive(pid)] == []


def test_a_company_that_does_not_tell_the_truth_fails_the_demo(tmp_path: Path) -> None:
    """Each answer is compared with the database itself, so it is the demo that notices, and says what differed."""
    done = sabotaged(tmp_path, LYING)
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, told["error"], told["rule"]) == (1, "demo_failed", "demo.step")
    assert "is not true" in told["detail"]
    price = re.search(r"\$[\d.]+", told["expected"])
    assert price is not None
    assert price[0].replace("$", "$1") in told["found"]


@pytest.mark.parametrize(("source", "step", "noticed"), SABOTEURS.values(), ids=SABOTEURS)
def test_a_company_that_doubles_or_ignores_something_fails_the_demo(
    tmp_path: Path, source: str, step: int, noticed: str
) -> None:
    """At the step that is about it, with what was expected there."""
    done = sabotaged(tmp_path, source)
    *said, told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, told["error"], told["rule"]) == (1, "demo_failed", "demo.step")
    assert re.search(noticed, told["detail"]), told
    titles = re.findall(r"^(\d+)\. ", "\n".join(line.get("said", "").strip() for line in said), re.MULTILINE)
    assert titles[-1] == str(step)


def test_what_the_demo_leaves_running_can_be_talked_to_until_it_is_told_to_end(tmp_path: Path) -> None:
    """`--keep` says what to try, and that works; SIGTERM ends both processes and removes the folder."""
    command = ["-m", "papaver.cli", "demo", "--keep", "--json"]
    with started(command, env={"TMPDIR": str(tmp_path)}) as demo:
        said = [demo.said()]
        while "client_id" not in said[-1]:
            said.append(demo.said())
        where = said[-1]
        options = ["--home", where["home"], "--resolve", where["resolve"][0], "--ca-file", where["ca_file"], "--json"]
        asked = papaver("ask", where["domain"], "What is your policy on returns?", *options)
        assert asked.returncode == 0, asked
        assert "can be returned within" in asked.stdout
        serving = where["serving"]
        command = ["-m", "papaver.cli", "company", "serve", where["app"], "--port", 0, "--json"]
        tls = ["--tls-cert", serving["tls_cert"], "--tls-key", serving["tls_key"]]
        with started([*command, *tls], env=serving["environment"]) as company:
            there = f"{where['domain']}:443={company.said()['listening']}"
            assert papaver("discover", where["domain"], *options[:2], "--resolve", there, *options[4:]).returncode == 0
        pids = {int(pid) for line in said for pid in re.findall(r"process (\d+)", line.get("said", ""))}
        demo.end()
        assert list(tmp_path.iterdir()) == []
        assert [pid for pid in pids if _alive(pid)] == []


def test_ctrl_c_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """No process and no folder, and no exit status of success."""
    # Who runs the tests in a shell's background has SIGINT ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "papaver.cli", "demo"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment({"TMPDIR": str(tmp_path)}),
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    with process, process.stdout as lines:
        pids: list[int] = []
        while len(pids) < 2:
            pids += [int(pid) for pid in re.findall(r"process (\d+)", lines.readline())]
        process.send_signal(signal.SIGINT)
        lines.read()
        assert process.wait(20) != 0
    assert list(tmp_path.iterdir()) == []
    assert [pid for pid in pids if _alive(pid)] == []
