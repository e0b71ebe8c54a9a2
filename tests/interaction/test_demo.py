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

LYING = '''
"""Adds a digit to every price that the shop's Company Agent tells."""
import sys

if "serve" in sys.argv:
    import papaver.demo.outfitter.app as app
    true = app.answer
    app.answer = lambda shop, text: true(shop, text).replace("$", "$1")
'''


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("3.2-02", "3.2-03", "8.1-01")
def test_every_step_is_verified_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """Discovery, a Session, three questions, an UPDATE, a retry, a kill inside the handler, a resume, and a close."""
    done = papaver("demo", "--seed", 7, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    numbers = re.findall(r"^(\d+)\. ", done.stdout, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert done.stdout.splitlines()[0].startswith("papaver demo, seed 7:")
    assert done.stdout.splitlines()[-1] == f"All {len(numbers)} steps were verified."
    assert done.stdout.count("so does the answer") == 6
    assert "SIGKILL to process" in done.stdout
    assert list(tmp_path.iterdir()) == []
    pids = {int(pid) for pid in re.findall(r"process (\d+)", done.stdout)}
    assert len(pids) == 3
    assert [pid for pid in pids if _alive(pid)] == []


def test_a_company_that_does_not_tell_the_truth_fails_the_demo(tmp_path: Path) -> None:
    """Each answer is compared with the database itself, so it is the demo that notices, and says what differed."""
    (tmp_path / "lying").mkdir()
    (tmp_path / "lying" / "sitecustomize.py").write_text(LYING)
    path = os.pathsep.join([str(tmp_path / "lying"), environment()["PYTHONPATH"]])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = papaver("demo", "--seed", 7, "--json", env={"PYTHONPATH": path, "TMPDIR": str(temporary)})
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, told["error"], told["rule"]) == (1, "demo_failed", "demo.step")
    assert "is not true" in told["detail"]
    price = re.search(r"\$[\d.]+", told["expected"])
    assert price is not None
    assert price[0].replace("$", "$1") in told["found"]
    assert list(temporary.iterdir()) == []


def test_what_the_demo_leaves_running_can_be_talked_to_until_it_is_told_to_end(tmp_path: Path) -> None:
    """`--keep` says what to try, and that works; SIGTERM ends both processes and removes the folder."""
    command = ["-m", "papaver.cli", "demo", "--keep", "--json"]
    with started(command, env={"TMPDIR": str(tmp_path)}) as demo:
        said = [demo.said()]
        while "client_id" not in said[-1]:
            said.append(demo.said())
        where = said[-1]
        options = ["--home", where["home"], "--resolve", where["resolve"], "--ca-file", where["ca_file"], "--json"]
        asked = papaver("ask", where["domain"], "What is your policy on returns?", *options)
        assert asked.returncode == 0, asked
        assert "can be returned within" in asked.stdout
        pids = {int(pid) for line in said for pid in re.findall(r"process (\d+)", line.get("said", ""))}
        demo.end()
        assert list(tmp_path.iterdir()) == []
        assert [pid for pid in pids if _alive(pid)] == []


def test_ctrl_c_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """No process and no folder, and no exit status of success."""
    process = subprocess.Popen(
        [sys.executable, "-m", "papaver.cli", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment({"TMPDIR": str(tmp_path)}),
    )
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
