"""The program: its commands, its help, its usage errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from papaver.cli.lazy import LazyGroup
from papaver.cli.main import cli
from tests.interop.processes import environment


def _commands(group: click.Command, path: str = "papaver") -> Iterator[tuple[str, click.Command]]:
    if isinstance(group, LazyGroup):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield f"{path} {name}", found
            yield from _commands(found, f"{path} {name}")


COMMANDS = dict(_commands(cli))
LEAVES = {path: one for path, one in COMMANDS.items() if not isinstance(one, LazyGroup)}


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_with_one_worked_example(path: str) -> None:
    """`--help` ends with a line to type, which is about this command."""
    shown = CliRunner().invoke(cli, [*path.split()[1:], "--help"])
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout
    assert f"$ {path.removesuffix(' serve')}" in shown.stdout


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_the_shared_options(path: str) -> None:
    """What scripts may rely on is there for each."""
    options = {name for one in LEAVES[path].params for name in one.opts}
    assert {"--json", "--trace", "--home", "--resolve", "--ca-file"} <= options


@pytest.mark.parametrize("path", COMMANDS)
def test_the_summary_in_the_group_is_about_a_command_that_is_there(path: str) -> None:
    """The list of commands is a table of its own, so that help imports none of them."""
    *parents, name = path.split()[1:]
    shown = CliRunner().invoke(cli, [*parents, "--help"]).stdout
    assert f"\n  {name} " in shown


def test_a_usage_error_has_exit_status_2() -> None:
    """To people on stderr."""
    done = CliRunner().invoke(cli, ["ask"])
    assert done.exit_code == 2
    assert "Missing argument 'DOMAIN'" in done.stderr


def test_a_usage_error_for_scripts_is_a_json_object() -> None:
    """With the same keys as any failure."""
    done = CliRunner().invoke(cli, ["ask", "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 2
    assert (told["error"], told["rule"], told["next"]) == ("usage", "", "papaver ask --help")


def test_an_exit_status_survives_json() -> None:
    """`--json` changes what is printed and nothing else."""
    done = CliRunner().invoke(cli, ["requirements", "--section", "none", "--json"])
    assert done.exit_code == 2
    done = CliRunner().invoke(cli, ["inspect", "x", "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == "invalid_jws"


def test_help_imports_no_command_and_no_party() -> None:
    """So that `papaver --help` stays fast."""
    code = (
        "import sys\nfrom papaver.cli.main import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "print([n for n in sys.modules if n.startswith(('papaver.company', 'papaver.personal_agent', 'papaver.stores',"
        " 'papaver.adapters', 'papaver.versions', 'papaver.demo', 'pydantic', 'httpx2', 'cryptography'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.splitlines()[-1] == "[]"
