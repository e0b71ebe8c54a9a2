"""The pages a newcomer reads first name things that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, every_file

PAGES = ("docs/architecture.md", "CONTRIBUTING.md", "VERSIONING.md", "README.md")
PATH = re.compile(r"(?<![\w/.:-])(?:\.\./)*(?:[\w.-]+/)+[\w.-]*")
READINGS = re.compile(r"\b[Rr]eadings (\d+(?:(?:, | and )\d+)*)")
OURS = 61
"""The first reading that we met ourselves; those before it came with the specification."""
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def _paths(text: str) -> set[str]:
    """Words that start like a path of the checkout or of the package."""
    starts = {path.name for folder in (ROOT, PACKAGE) for path in folder.iterdir()} - {".git", "build", ".venv"}
    return {word.rstrip(".") for word in PATH.findall(text) if word.partition("/")[0] in starts}


def _exists(word: str) -> bool:
    places = (folder / word.rstrip("/") for folder in (ROOT, PACKAGE))
    return any(place.exists() or place.with_name(place.name + ".py").exists() for place in places)


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    """Files move; a page that still names the old place sends its reader astray."""
    missing = [word for word in sorted(_paths((ROOT / page).read_text(encoding="utf-8"))) if not _exists(word)]
    assert missing == []


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))
def test_every_link_inside_the_documents_leads_somewhere(page: str) -> None:
    """A relative link names a file of the checkout."""
    path = ROOT / page
    broken = [
        target for target in LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if "/" not in page])
def test_every_link_of_the_top_pages_leads_somewhere(page: str) -> None:
    """The same for the pages at the root."""
    targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_decision_has_its_four_parts() -> None:
    """A decision record is context, decision, what it costs and what would change our mind, on one page."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert len(records) >= 9
    parts = ("## Context", "## Decision", "## What it costs", "## What would change our mind")
    faults = [str(path.name) for path in records if any(part not in path.read_text(encoding="utf-8") for part in parts)]
    assert faults == []
    assert [path.name for path in records if path.read_text(encoding="utf-8").count("\n") > 60] == []


def test_decisions_are_numbered_without_a_gap() -> None:
    """A number is given once and never given back."""
    numbers = [int(path.name[:4]) for path in sorted(Path(ROOT / "docs" / "decisions").glob("[0-9]*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_index_of_decisions_names_each_with_its_title() -> None:
    """The index is what a reader searches."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    wanted: list[str] = []
    for path in sorted(folder.glob("[0-9]*.md")):
        number, _, title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        wanted.append(f"- [{int(number):04d}]({path.name}) {title}")
    assert [line for line in index.splitlines() if line.startswith("- ")] == wanted


def _readings() -> list[int]:
    """The numbers of the readings, in the order of the page."""
    page = (ROOT / "docs" / "readings.md").read_text(encoding="utf-8")
    return [int(number) for number in re.findall(r"^### (\d+)\. ", page, re.MULTILINE)]


def _cited() -> dict[int, list[str]]:
    """Number → the files that cite this reading."""
    places: dict[int, list[str]] = {}
    for file in every_file():
        if file.suffix in (".py", ".toml", ".md") and file.parts[0] in ("src", "tests", "tools", "spec", "docs"):
            for found in READINGS.findall((ROOT / file).read_text(encoding="utf-8")):
                for number in re.findall(r"\d+", found):
                    places.setdefault(int(number), []).append(file.as_posix())
    return places


def test_every_reading_that_is_cited_exists() -> None:
    """Numbers are never given back, so a citation stays right; what is cited is on the page."""
    numbers = _readings()
    assert numbers == list(range(1, len(numbers) + 1))
    assert {number: files for number, files in _cited().items() if number not in numbers} == {}


def test_every_reading_of_ours_is_linked_from_the_code_that_follows_it() -> None:
    """A choice that no line of code names is forgotten at the next change."""
    followed = {number for number, files in _cited().items() if any(file.startswith("src/") for file in files)}
    assert [number for number in _readings() if number >= OURS and number not in followed] == []
