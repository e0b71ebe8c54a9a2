"""The demo's processes: heard, told, ended; and what is said when one of them fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from papaver.demo.outcome import DemoFailed
from papaver.demo.processes import AgentProcess, run_once
from tests.interop.processes import environment

ECHO = """
import json, os, signal, sys
print(json.dumps({"ready": os.environ.get("OUTFITTER_X"), "home": os.environ.get("PAPAVER_HOME")}), flush=True)
for line in sys.stdin:
    members = json.loads(line)
    if members["do"] == "end":
        print("goodbye", file=sys.stderr, flush=True)
        sys.exit(7)
    if members["do"] == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if members["do"] == "fail":
        members = {"error": "refused", "detail": "because"}
    if members["do"] != "silence" if "do" in members else True:
        print(json.dumps(members), flush=True)
"""


@contextmanager
def _child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[AgentProcess]:
    (tmp_path / "echo_module.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PAPAVER_HOME", "not handed on")
    child = AgentProcess("echo", ["echo_module"], tmp_path / "log", OUTFITTER_X="x")
    try:
        yield child
    finally:
        child.end()


def test_a_child_is_told_and_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own environment, not what the caller's Personal Agent is told."""
    with _child(tmp_path, monkeypatch) as child:
        assert child.hear() == {"ready": "x", "home": None}
        assert child.do("say", text="é") == {"do": "say", "text": "é"}


def test_a_failure_that_it_tells_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its reason."""
    with _child(tmp_path, monkeypatch) as child:
        child.hear()
        with pytest.raises(DemoFailed) as caught:
            child.do("fail")
    assert "the echo failed" in caught.value.description
    assert "refused: because" in caught.value.detail


def test_an_end_is_told_with_its_status_and_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether we listen or speak."""
    with _child(tmp_path, monkeypatch) as child:
        child.hear()
        with pytest.raises(DemoFailed) as caught:
            child.do("end")
        assert "the echo ended (7)" in caught.value.description
        assert "goodbye" in caught.value.detail
        with pytest.raises(DemoFailed) as caught:
            child.tell(do="say")
        assert "the echo ended (7)" in caught.value.description


def test_silence_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever."""
    with _child(tmp_path, monkeypatch) as child:
        child.hear()
        child.tell(do="silence")
        with pytest.raises(DemoFailed) as caught:
            child.hear(seconds=0.05)
    assert "said nothing" in caught.value.description


def test_a_kill_is_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL, and ending it afterwards is harmless."""
    with _child(tmp_path, monkeypatch) as child:
        child.hear()
        assert child.kill() == -9


def test_who_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind."""
    monkeypatch.setattr("papaver.demo.processes.GRACE", 0.1)
    with _child(tmp_path, monkeypatch) as child:
        child.hear()
        child.do("stay")
        child.end()
        assert child.kill() == -9


def test_a_command_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it said."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    with pytest.raises(DemoFailed) as caught:
        run_once(["init", "http://x", "--home", str(tmp_path)])
    assert "papaver init ended with 1" in caught.value.description
    assert "client.client-id-form" in caught.value.detail
