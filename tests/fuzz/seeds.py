"""The corpora: small files that take each parser through every line and branch, and what grows out of them.

`python -m tests.fuzz.seeds NAME MODULE…` replays one corpus alone and prints what of the modules it does not reach.
A corpus NAME is a folder of `tests/fuzz/corpus`, replayed by `drive` of `tests/fuzz/test_NAME.py`. What has to be
signed cannot lie in a file: there the corpus is the explicit examples of `tests/fuzz/test_NAME.py`, run by pytest.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import coverage
import pytest
from hypothesis import Phase, settings
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


def unreached(name: str, *modules: str) -> str:
    """What the corpus alone leaves out of these modules, measured in a process of its own; "" for nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.seeds", name, *modules],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return (done.stdout + done.stderr).strip()


def _replay(name: str, modules: list[str]) -> str:
    recording = coverage.Coverage(data_file=None, branch=True, config_file=False, source_pkgs=modules)
    recording.start()
    if (CORPUS / name).is_dir():
        drive = importlib.import_module(f"tests.fuzz.test_{name}").drive
        for path in files(name):
            drive(path.read_bytes())
    else:
        _run_examples(name)
    recording.stop()
    return "\n".join(filter(None, (_gaps(recording, module) for module in modules)))


def _run_examples(name: str) -> None:
    settings.register_profile("examples", database=None, deadline=None, phases=[Phase.explicit])
    off = [word for plugin in ("terminal", "cacheprovider", "xdist") for word in ("-p", f"no:{plugin}")]
    quiet = ["-o", "addopts=", "--assert=plain", "--hypothesis-profile", "examples", "-k", "not examples_alone"]
    status = pytest.main([*off, *quiet, str(Path(__file__).parent / f"test_{name}.py")])
    if status != pytest.ExitCode.OK:
        sys.stdout.write(f"the examples of {name} fail\n")


def _gaps(recording: coverage.Coverage, module: str) -> str:
    source = str(importlib.import_module(module).__file__)
    _, _, _, missing, text = recording.analysis2(source)
    arcs = recording.branch_stats(source)
    partial = {line: taken for line, taken in arcs.items() if taken[0] != taken[1]}
    return f"{module}: lines {text}, branches {partial}" if missing or partial else ""


if __name__ == "__main__":
    sys.stdout.write(_replay(sys.argv[1], sys.argv[2:]))
