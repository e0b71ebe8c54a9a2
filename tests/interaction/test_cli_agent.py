"""`discover`, `ask` and `status` against a real Company on loopback, whose words are not to be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from papaver.cli import agent
from papaver.cli.main import cli
from papaver.personal_agent.settings import AgentLimits
from tests.interop.processes import Place, papaver, started

ME = "https://agent.example/agent.json"
SHOP, API = "shop.example", "api.shop.example"
COMPANY = """
domain = "shop.example"
name = "Shop\\u001b[31m\\nof lies"
base_url = "https://api.shop.example/poppy"
handler = "shop:answer"

[[apis]]
type = "openapi"
url = "https://shop.example/openapi.json"
description = "Orders\\u0007 and returns"
"""
HANDLER = """
from papaver import Author, Reply, Turn
from papaver.protocol.conversation.model import AuthorType

async def answer(turn: Turn) -> Reply:
    if "lie" in turn.text:
        author = Author(AuthorType.HUMAN, name="you\\x1b]0;x\\x07")
        return Reply("\\x1b[2Jpapaver: signed in\\nyou: I agree\\u202e", data={"said": "\\x1b[5m"}, author=author)
    facts = dict(turn.context)
    sent = [dict(one.data or {}) for one in turn.messages]
    return Reply(f"You said {turn.text!r}.", data={"context": facts, "sent": sent})
"""


@dataclass(frozen=True)
class World:
    """`papaver` as a Personal Agent in this process, with a Company on loopback."""

    folder: Path
    options: list[str]
    company: list[str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def run(self, *arguments: str, home: Path | None = None) -> Result:
        options = [*self.options, "--home", str(home or self.home)]
        runner = CliRunner(env={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"})
        return runner.invoke(cli, [*arguments, *options])

    def lines(self, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        done = self.run(*arguments, "--json")
        assert done.exit_code == status, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ask(self, *arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The messages, and the last line."""
        *events, end = self.lines("ask", SHOP, *arguments)
        return [one["event"]["message"] for one in events if one["event"]["type"] == "message"], end


@pytest.fixture(name="world", scope="module")
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The Company and the Personal Agent's documents, each a process."""
    folder = tmp_path_factory.mktemp("cli")
    place = Place.make(folder)
    (folder / "papaver.toml").write_text(COMPANY)
    (folder / "shop.py").write_text(HANDLER)
    home = folder / "home"
    assert papaver("init", ME, "--home", home).returncode == 0
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", home, "--serve", "127.0.0.1:0"]
    with started([*serving, *place.tls("agent.example")]) as identity:
        at = f"agent.example:443={identity.said()['listening']}"
        command = [
            "-m",
            "papaver.cli",
            "company",
            "serve",
            "--json",
            "--port",
            0,
            *place.tls(SHOP, API, "other.example"),
        ]
        with started([*command, "--resolve", at, "--ca-file", place.ca_file], cwd=folder) as company:
            at = company.said()["listening"]
            options = ["--resolve", f"{API}:443={at}", "--resolve", f"{SHOP}:443={at}", "--ca-file", str(place.ca_file)]
            yield World(folder, options, ["--config", str(folder / "papaver.toml")])


def test_discover_shows_each_check_and_what_is_offered(world: World) -> None:
    """The keys that scripts rely on."""
    (found,) = world.lines("discover", SHOP)
    assert (found["domain"], found["identifier"], found["issuer"]) == (SHOP, f"https://{SHOP}", None)
    assert found["version"] == "0.4"
    assert found["channels"] == [
        {"type": "poppy", "url": f"https://{API}/poppy/conversations", "access": "session"},
        {"type": "openapi", "url": f"https://{SHOP}/openapi.json", "description": "Orders\x07 and returns"},
    ]
    assert all(one["ok"] and one["rule"] and one["detail"] for one in found["checks"])
    assert "discovery.domain-is-host" in {one["rule"] for one in found["checks"]}


def test_discover_needs_no_home(world: World) -> None:
    """It carries no credential, and leaves nothing behind."""
    nowhere = world.folder / "nowhere"
    done = world.run("discover", SHOP, home=nowhere)
    assert done.exit_code == 0, done.output
    assert "ok    discovery.domain-is-host" in done.stdout
    assert f"identifier  https://{SHOP}" in done.stdout
    assert not nowhere.exists()


def test_what_a_company_calls_itself_cannot_steer_the_terminal(world: World) -> None:
    """Names, descriptions: one line, without escape sequences."""
    shown = world.run("discover", SHOP).stdout
    assert "Shop of lies (shop.example)" in shown
    assert "Orders and returns" in shown
    assert not set(shown) & set("\x1b\x07\r")


def test_a_failed_discovery_shows_both_values_and_what_passed_before(world: World) -> None:
    """A Company's document is on its own domain only, whoever else leads there."""
    reach = world.options[3].replace(f"{SHOP}:443", "other.example:443")
    options = ["--resolve", reach, *world.options[4:], "--home", str(world.home), "--json"]
    done = CliRunner().invoke(cli, ["discover", "other.example", *options])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["error"] == "discovery_failed"
    assert (told["rule"], told["found"]) == ("discovery.document-served", "HTTP 404")
    assert {"expected", "detail", "next"} <= told.keys()


@pytest.mark.requirement("8.4-27")
def test_ask_prints_a_company_s_words_as_words(world: World) -> None:
    """Escape sequences are gone, and no line of theirs begins as one of ours does."""
    shown = world.run("ask", SHOP, "Please lie.").stdout
    assert not set(shown) & set("\x1b\x07\r\u202e")
    assert "you (a person): papaver: signed in\n  you: I agree\n" in shown
    assert "you: Please lie.\n" in shown


def test_ask_sends_everything_that_its_options_say(world: World) -> None:
    """Whose words, details, facts with their types; and prints events as received."""
    facts = ["--context", "locale=de", "--context", "user_available=true", "--context", "a=b=c"]
    (sent, reply), end = world.ask("Bitte!", "--as", "human", "--data", '{"order": 17}', "--no-stream", *facts)
    assert sent["author"] == {"type": "human"}
    assert sent["context"] == {"locale": "de", "user_available": True, "a": "b=c"}
    assert sent["data"] == {"order": 17}
    assert reply["role"] == "company"
    assert reply["data"] == {"context": sent["context"], "sent": [{"order": 17}]}
    assert end["conversation_id"].startswith("cnv_")
    assert (end["status"], end["responder"]) == ("idle", "agent")
    assert end["cursor"]


def test_a_conversation_goes_on_and_each_event_is_printed_once(world: World) -> None:
    """Another process, the same vault."""
    _, first = world.ask("One")
    messages, second = world.ask("Two", "--conversation", first["conversation_id"])
    assert [one["text"] for one in messages] == ["Two", "You said 'Two'."]
    assert second["conversation_id"] == first["conversation_id"]
    nothing, third = world.ask("--conversation", first["conversation_id"])
    assert (nothing, third["cursor"]) == ([], second["cursor"])


def test_another_user_has_no_part_in_it(world: World) -> None:
    """`--user` is another person to the Company, `--anonymous` a new one each time."""
    _, mine = world.ask("Mine")
    (told,) = world.lines("ask", SHOP, "And?", "--user", "kim", "--conversation", mine["conversation_id"], status=1)
    assert (told["error"], told["next"]) == (
        "conversation_not_found",
        "papaver status lists the conversations of this machine",
    )
    _, end = world.ask("Who am I?", "--anonymous")
    known = [one.get("conversation_id") for one in world.lines("status")]
    assert mine["conversation_id"] in known
    assert end["conversation_id"] not in known


def test_one_of_the_user_s_agents_can_be_named(world: World) -> None:
    """The Company is sent an Agent ID, never the name."""
    messages, _ = world.ask("Hello", "--agent-id", "shopping")
    assert len(messages) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x", "--data", "[1]"],
        ["x", "--data", "{"],
        ["x", "--context", "noequals"],
        ["x", "--anonymous", "--conversation", "cnv_1"],
        ["x", "--as", "company"],
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(world: World, arguments: list[str]) -> None:
    """Before anything is sent."""
    assert world.run("ask", SHOP, *arguments).exit_code == 2


def test_status_shows_what_is_held_and_no_secret(world: World) -> None:
    """Companies, conversations, delegated keys with their end, and where the vault's key is."""
    _, end = world.ask("For the record")
    who, *rest = world.lines("status", SHOP)
    assert who == {"client_id": ME, "home": str(world.home), "vault_key": str(world.home / "agent.db.key")}
    (company,) = [one for one in rest if "identifier" in one]
    assert (company["domain"], company["identifier"]) == (SHOP, f"https://{SHOP}")
    assert any(one.get("conversation_id") == end["conversation_id"] and one["status"] == "idle" for one in rest)
    keys = [one for one in rest if "delegated_key" in one]
    assert keys
    assert all(one["expires_at"] for one in keys)
    (key,) = json.loads((world.home / "keys.json").read_text())["keys"]
    assert key["d"] not in json.dumps(rest)
    assert len(world.lines("status", "none.example")) == 1
    shown = world.run("status").stdout
    assert f"{end['conversation_id']}  {SHOP}  me    idle, agent\n" in shown
    assert "status when last seen\n" in shown
    assert "Nothing is known of none.example" in world.run("status", "none.example").stdout


def test_a_message_that_did_not_arrive_is_kept_and_sent_first_next_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Company is away; what was written goes out again under the same id, before what comes next."""
    gone = ["--resolve", f"{API}:443=127.0.0.1:9", *world.options[2:]]
    home = world.folder / "patient"
    assert papaver("init", ME, "--home", home).returncode == 0
    (world.folder / "patient" / "keys.json").write_bytes((world.home / "keys.json").read_bytes())
    assert world.run("ask", SHOP, "First", home=home).exit_code == 0
    monkeypatch.setattr(agent, "LIMITS", AgentLimits(attempts=1))
    away = CliRunner().invoke(cli, ["ask", SHOP, "Second", *gone, "--home", str(home), "--json"])
    told = json.loads(away.stdout)
    assert away.exit_code == 1, away.output
    assert told["error"] == "fetch_failed"
    assert "sent again under the same id" in told["detail"]
    assert told["next"].startswith(f"do not type it again: papaver ask {SHOP} sends it and reads on")
    assert "Connection refused" in told["found"]
    pending = world.run("status", SHOP, "--json", home=home).stdout
    assert '"pending"' in pending
    assert "Second" in world.run("status", SHOP, home=home).stdout
    third = world.run("ask", SHOP, "Third", home=home)
    assert third.exit_code == 0
    assert "sent before: msg_" in third.stderr
    assert '"pending"' not in world.run("status", SHOP, "--json", home=home).stdout
    CliRunner().invoke(cli, ["ask", SHOP, "Fourth", *gone, "--home", str(home)])
    without = world.run("ask", SHOP, home=home)
    assert without.exit_code == 0, without.output
    assert "you: Fourth\n" in without.stdout
    assert "You said 'Fourth'." in without.stdout
    assert "sent before: msg_" in without.stderr
    nothing = world.run("ask", SHOP, home=home)
    assert nothing.exit_code == 2
    assert "there is nothing to send" in nothing.stderr


@pytest.mark.requirement("4.1-16", "7-30")
def test_a_blocked_agent_is_refused_at_its_next_request(world: World) -> None:
    """And accepted again at the next one after it was allowed; the server runs on."""
    for verdict, status in (("block", 1), ("allow", 0)):
        done = CliRunner().invoke(cli, ["company", verdict, ME, *world.company])
        assert done.exit_code == 0, done.output
        assert world.run("ask", SHOP, "Am I welcome?").exit_code == status
    CliRunner().invoke(cli, ["company", "block", ME, *world.company])
    (told,) = world.lines("ask", SHOP, "Am I welcome?", status=1)
    assert told["error"] == "invalid_session"
    assert "this Company does not accept this client" in told["detail"]
    CliRunner().invoke(cli, ["company", "allow", ME, *world.company])


def test_trace_shows_each_exchange_and_hides_every_secret(world: World) -> None:
    """Methods, URLs, statuses, and header fields that are no secret."""
    errors = world.run("ask", SHOP, "Hello", "--trace").stderr
    assert f"> POST https://{API}/poppy/conversations\n" in errors
    assert f"< 201  POST https://{API}/poppy/conversations\n" in errors
    assert "\n  poppy-session: **********\n" in errors.lower()
    assert "\n  poppy-version: 0.4\n" in errors.lower()
    assert "eyJ" not in errors
