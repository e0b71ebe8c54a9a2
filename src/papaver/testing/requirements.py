"""The manifest of requirements, and the `requirement` marker that ties tests to its rows.

As a pytest plugin (`pytest_plugins = ["papaver.testing.requirements"]`) it refuses a marker that names an
unknown row, or more than three rows on one test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

__all__ = ["MOST_ROWS_ON_ONE_TEST", "STATUSES", "Row", "known_rows", "marked_rows", "read_rows", "spec_folder"]

STATUSES = ("tested", "deferred", "outside", "open")
MOST_ROWS_ON_ONE_TEST = 3
"""A test that shows more than this shows none of them well; parametrise by row instead."""


@dataclass(frozen=True, slots=True)
class Row:
    """One normative statement, or one capability of a Company Agent.

    `section`, `level`, `party` and `kind` are empty for a capability. `rules` are the ids of the check
    functions that enforce the row. `reason` belongs to the statuses `deferred` and `outside`.
    """

    id: str
    text: str
    status: str
    section: str = ""
    level: str = ""
    party: str = ""
    kind: str = ""
    check: str = ""
    reason: str = ""
    restates: str = ""
    source: str = "specification"
    rules: tuple[str, ...] = ()
    issue: int | None = None


def spec_folder() -> Path:
    """The folder `spec`: packed into the wheel beside this module, else that of the checkout."""
    packed = Path(__file__).parent / "spec"
    return packed if packed.is_dir() else Path(__file__).parents[3] / "spec"


def read_rows(path: Path) -> tuple[Row, ...]:
    """Every row of one manifest file, in its order.

    Raises ValueError for a duplicate id, an unknown status, or a reason that is missing or too many.
    """
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    tables: list[dict[str, Any]] = [*document.get("requirement", ()), *document.get("capability", ())]
    rows = tuple(_read_row(table) for table in tables)
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"{path.name}: two rows have the id {row.id}")
        seen.add(row.id)
        if row.status not in STATUSES:
            raise ValueError(f"{path.name}: {row.id} has the unknown status {row.status!r}")
        if bool(row.reason) != (row.status in ("deferred", "outside")):
            raise ValueError(f"{path.name}: {row.id} is {row.status}; `deferred` and `outside` have a reason, no other")
    return rows


def _read_row(table: Mapping[str, Any]) -> Row:
    named: str | list[str] = table.get("rule", [])
    texts = ("section", "level", "party", "kind", "check", "reason", "restates", "source")
    return Row(
        id=table["id"],
        text=table["text"],
        status=table["status"],
        rules=(named,) if isinstance(named, str) else tuple(named),
        issue=table.get("issue"),
        **{name: table[name] for name in texts if name in table},
    )


@cache
def known_rows() -> Mapping[str, Row]:
    """Row id → row: the requirements of every protocol version, and the Company Agent's capabilities."""
    folder = spec_folder()
    files = [*sorted(folder.glob("*/requirements.toml")), folder / "company-agent.toml"]
    return {row.id: row for path in files for row in read_rows(path)}


def marked_rows(item: pytest.Item) -> tuple[str, ...]:
    """The ids of the rows that this test says it shows, each once."""
    ids: dict[str, None] = {}
    for marker in item.iter_markers("requirement"):
        ids.update(dict.fromkeys(str(row_id) for row_id in marker.args))
    return tuple(ids)


def _faults(items: Iterable[pytest.Item], known: Mapping[str, Row]) -> list[str]:
    faults: list[str] = []
    for item in items:
        ids = marked_rows(item)
        unknown = [row_id for row_id in ids if row_id not in known]
        if unknown:
            faults.append(f"{item.nodeid}: names unknown rows {', '.join(unknown)}")
        if len(ids) > MOST_ROWS_ON_ONE_TEST:
            faults.append(f"{item.nodeid}: names {len(ids)} rows, at most {MOST_ROWS_ON_ONE_TEST} go on one test")
    return faults


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the rows of the manifest that this test shows")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse the run when a marker is wrong, before any test starts."""
    import pytest

    faults = _faults(items, known_rows())
    if faults:
        raise pytest.UsageError("wrong requirement markers:\n  " + "\n  ".join(faults))
