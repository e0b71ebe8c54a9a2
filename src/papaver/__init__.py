"""The public names of papaver, each imported from its room when it is first asked for (PEP 562).

`import papaver` itself imports nothing else, so that a program pays only for the rooms it enters.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
