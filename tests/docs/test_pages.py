"""Pages say what is so: their code is the tested files, their tables the program's own help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from papaver.cli.lazy import LazyGroup
from papaver.cli.main import cli
from tests.docs.pages import GUIDES, ROOT, Block, blocks

BLOCKS = [block for page in GUIDES for block in blocks(page)]
PYTHON = [block for block in BLOCKS if block.kind == "python"]
SHELL = [(block.page, line) for block in BLOCKS if block.kind == "sh" for line in block.text.splitlines()]


def _commands(group: LazyGroup, path: str = "papaver") -> Iterator[tuple[str, str, click.Command]]:
    context = click.Context(group)
    for name, entry in group.entries.items():
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, LazyGroup):
            yield from _commands(found, f"{path} {name}")
        else:
            yield f"{path} {name}", entry.summary, found


assert isinstance(cli, LazyGroup)
COMMANDS = {path: (summary, found) for path, summary, found in _commands(cli)}


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block.page}-{block.file}")
def test_code_is_the_file_that_is_tested(block: Block) -> None:
    """Letter for letter, so that what a reader copies runs."""
    assert block.file, f"{block.page} has a python block without its file:\n{block.text}"
    assert block.text == (ROOT / block.file).read_text(encoding="utf-8")


def test_every_sample_is_shown_somewhere() -> None:
    """A sample that no page shows is not a document."""
    samples = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs_src").glob("*.py")}
    assert samples == {block.file for block in PYTHON}


@pytest.mark.parametrize(("page", "line"), SHELL)
def test_a_command_in_a_page_is_one_that_the_program_has(page: str, line: str) -> None:
    """With its options; nobody types a flag that is not there."""
    words = shlex.split(line, comments=True)
    if "papaver" not in words:
        return
    words = words[words.index("papaver") :]
    path = next(path for path in COMMANDS if words[: path.count(" ") + 1] == path.split())
    found = COMMANDS[path][1]
    context = click.Context(found)
    flags = {name for one in found.get_params(context) for name in one.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= flags


def test_the_table_of_commands_is_the_program_s_own_help() -> None:
    """Every command once, in its words."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(papaver [^`]+)` \| (.+?) \|$", page, re.MULTILINE)
    assert rows == [(path, summary) for path, (summary, _) in COMMANDS.items()]


def test_the_readme_starts_with_the_two_commands() -> None:
    """Before anything else."""
    first = next(blocks("README.md"))
    assert [line.partition("#")[0].strip() for line in first.text.splitlines()] == ["make demo", "make test"]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block.page}-{block.file}")
def test_b27_examples_use_the_public_url_that_is_configured(block: Block) -> None:
    """Never a loopback address: what a reader copies is what the world has to see."""
    assert not re.search(r"localhost|127\.0\.0\.1|http://", block.text)
