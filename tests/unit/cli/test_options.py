"""The options of every command, and how its failures end."""

from __future__ import annotations

import json
import logging

import click
from click.testing import CliRunner

from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.protocol.errors import ConfigurationError, SignInNeeded


@command("probe", example="papaver probe 1")
@click.argument("what")
def probe(run: Run, what: str) -> None:
    """Say something."""
    if what == "fails":
        raise ConfigurationError("a\x1b[31m is b", rule="some.rule", detail="because")
    if what == "signs-in":
        raise SignInNeeded("orders:read")
    if what == "warns":
        logging.getLogger("papaver.network").warning("take\x07 care")
    if what == "breaks":
        try:
            raise ValueError("no\x1b[31m row")
        except ValueError:
            logging.getLogger("papaver.company.turns").exception("turn t1 failed")
    if what == "exchanges":
        logging.getLogger("papaver.exchange").debug("> GET https://shop.example/")
    run.line(what=what, home=str(run.home.folder), resolve=str(run.network.resolve))
    run.say("said {what}", what=f"{what}\x1b[2J")


def _run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    done = CliRunner(env={"PAPAVER_HOME": None, "PAPAVER_RESOLVE": None, **environment}).invoke(probe, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def test_text_is_for_people() -> None:
    """Without `--json`, lines; another party's words made safe."""
    assert _run("something") == (0, "said something\n", "")


def test_json_is_one_object_per_line() -> None:
    """With `--json`, nothing else is on stdout."""
    status, out, errors = _run("something", "--json", "--home", "here", "--resolve", "a.example:443=127.0.0.1:8443")
    assert (status, errors) == (0, "")
    assert json.loads(out) == {"what": "something", "home": "here", "resolve": "a.example:443=127.0.0.1:8443"}


def test_the_environment_says_what_flags_do_not() -> None:
    """PAPAVER_HOME and PAPAVER_RESOLVE."""
    told = json.loads(_run("x", "--json", PAPAVER_HOME="there", PAPAVER_RESOLVE="b.example:443=127.0.0.1:1")[1])
    assert (told["home"], told["resolve"]) == ("there", "b.example:443=127.0.0.1:1")


def test_a_failure_is_told_on_stderr_with_its_rule_and_next_step() -> None:
    """Escape sequences in it do nothing."""
    status, out, errors = _run("fails")
    assert (status, out) == (1, "")
    assert (
        errors
        == "papaver: a is b (because) [some.rule]\n  next      correct the setting; probe --help has an example\n"
    )


def test_a_failure_for_scripts_is_a_json_object() -> None:
    """`error`, `rule`, `detail`, `next`."""
    status, out, _ = _run("fails", "--json")
    told = json.loads(out)
    assert (status, told["error"], told["rule"]) == (1, "configuration", "some.rule")
    assert {"detail", "next"} <= told.keys()


def test_sign_in_has_an_exit_status_of_its_own() -> None:
    """3: the User has to sign in."""
    assert _run("signs-in")[0] == 3


def test_warnings_go_to_stderr_made_safe() -> None:
    """And to nowhere else."""
    status, out, errors = _run("warns", "--json")
    assert (status, errors) == (0, "papaver: take care\n")
    assert "care" not in out


def test_a_warning_has_its_traceback_made_safe() -> None:
    """What a handler raised is what its author has to see."""
    errors = _run("breaks")[2]
    assert errors.startswith("papaver: turn t1 failed\n  Traceback (most recent call last):\n")
    assert errors.endswith("  ValueError: no row\n")


def test_exchanges_are_shown_only_when_asked_for() -> None:
    """`--trace`, which leaves nothing behind for the next command."""
    assert _run("exchanges")[2] == ""
    assert _run("exchanges", "--trace")[2] == "> GET https://shop.example/\n"
    assert _run("exchanges")[2] == ""


def test_help_has_the_worked_example() -> None:
    """One per command."""
    assert "Example:\n    $ papaver probe 1" in _run("--help")[1]


@command("offline", network=False, example="papaver offline")
@click.option("--first", help="Its own.")
@click.option("--second", help="Its own, too.")
def offline(run: Run, first: str | None, second: str | None) -> None:
    """Ask nobody."""
    run.say("{first} {second}", first=first, second=second)


def test_help_begins_with_the_command_s_own_options() -> None:
    """In their order; those for the network only where there is one."""
    shown = CliRunner().invoke(offline, ["--help"]).stdout
    places = [shown.index(name) for name in ("--first", "--second", "--json", "--trace", "--home")]
    assert places == sorted(places)
    assert "--resolve" not in shown
    assert "--ca-file" in _run("--help")[1]
    done = CliRunner().invoke(offline, ["--first", "a", "--second", "b", "--resolve", "a.example:443=127.0.0.1:1"])
    assert (done.exit_code, done.stdout) == (0, "a b\n")
