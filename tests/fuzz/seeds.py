"""The corpora: small files that take each parser through every line and branch, and what grows out of them.

`python -m tests.fuzz.seeds NAME MODULE` replays one corpus alone and prints what of the module it does not reach.
A corpus NAME is a folder of `tests/fuzz/corpus`, replayed by `drive` of `tests/fuzz/test_NAME.py`.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import coverage
from hypothesis import strategies as st

__all__ = ["files", "grown", "unreached"]

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"


def files(name: str) -> list[Path]:
    """The files of one corpus, in order."""
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())


def grown(name: str) -> st.SearchStrategy[bytes]:
    """Inputs like those of a corpus: two of its files cut and joined, with a few octets put between."""
    contents = st.sampled_from([path.read_bytes() for path in files(name)])
    cut = st.integers(0, 120)
    return st.binary(max_size=64) | st.builds(_splice, contents, cut, st.binary(max_size=6), contents, cut)


def _splice(first: bytes, end: int, between: bytes, second: bytes, begin: int) -> bytes:
    return first[:end] + between + second[begin:]


def unreached(name: str, module: str) -> str:
    """What the corpus alone leaves out of a module, measured in a process of its own; "" for nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.seeds", name, module],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return (done.stdout + done.stderr).strip()


def _replay(name: str, module: str) -> str:
    recording = coverage.Coverage(data_file=None, branch=True, config_file=False, source_pkgs=[module])
    recording.start()
    drive = importlib.import_module(f"tests.fuzz.test_{name}").drive
    for path in files(name):
        drive(path.read_bytes())
    recording.stop()
    source = str(importlib.import_module(module).__file__)
    _, _, _, missing, text = recording.analysis2(source)
    arcs = recording.branch_stats(source)
    partial = {line: taken for line, taken in arcs.items() if taken[0] != taken[1]}
    return f"lines {text}, branches {partial}" if missing or partial else ""


if __name__ == "__main__":
    sys.stdout.write(_replay(*sys.argv[1:3]))
