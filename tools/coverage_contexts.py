"""A pytest plugin that notes, under coverage, which test file ran each line (`make maxicov` reads it).

Contexts: `import` for what merely importing a core module runs, else the path of the test file.
Without coverage the plugin does nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import coverage

__all__ = ["CORE", "IMPORT_CONTEXT"]

CORE = ("values", "web", "jose", "oauth", "protocol", "versions")
"""The rooms whose every line and branch is shown, each module by its own test file."""
IMPORT_CONTEXT = "import"


def _recording() -> coverage.Coverage | None:
    module = sys.modules.get("coverage")
    return module.Coverage.current() if module is not None else None


def _switch(context: str) -> None:
    recording = _recording()
    if recording is not None:
        recording.switch_context(context)


def pytest_configure() -> None:
    """Import the core once under a context of its own, so that no test file is credited with `def` lines."""
    if _recording() is None:
        return
    _switch(IMPORT_CONTEXT)
    for room in CORE:
        package = importlib.import_module(f"papaver.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    _switch("")


def pytest_collectstart(collector: pytest.Collector) -> None:
    if isinstance(collector, pytest.Module):
        _switch(_context(collector))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    _switch(_context(item))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist leaves without the exit handlers, so what it saw is written here."""
    recording = _recording()
    if recording is not None and hasattr(session.config, "workerinput"):
        recording.stop()
        recording.save()


def _context(node: pytest.Item | pytest.Collector) -> str:
    return node.path.relative_to(node.config.rootpath).as_posix()
