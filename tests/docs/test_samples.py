"""The samples run as they are: the pair of the README talks, and each page's other claims hold."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.interop.processes import Place, papaver, started

ME = "https://agent.example/agent.json"


class World:
    """A Personal Agent whose home is the folder where the samples run, with its documents served."""

    def __init__(self, place: Place, agent_port: str) -> None:
        self.place, self._agent_port = place, agent_port

    @property
    def folder(self) -> Path:
        return self.place.folder

    @contextmanager
    def company(self, target: str, domain: str = "shop.example") -> Generator[dict[str, str]]:
        """Serve a sample over TLS; the environment of who talks to it."""
        command = ["-m", "papaver.cli", "company", "serve", target, "--json", "--port", 0, *self.place.tls(domain)]
        local = {"PAPAVER_RESOLVE": f"agent.example:443=127.0.0.1:{self._agent_port}", **self._shared}
        with started(command, cwd=self.folder, env=local) as company:
            port = company.said()["listening"].rpartition(":")[2]
            yield {"PAPAVER_RESOLVE": f"{domain}:443=127.0.0.1:{port}", **self._shared}

    def run(self, sample: str, environment: dict[str, str]) -> str:
        """Run a sample of the Personal Agent's side; what it prints."""
        with started([ROOT / "docs_src" / sample], cwd=self.folder, env=environment) as process:
            assert process.process.stdout is not None
            printed = process.process.stdout.read()
            assert process.process.wait(30) == 0
        return printed

    def ask(self, domain: str, text: str, environment: dict[str, str]) -> list[dict[str, Any]]:
        """The Company's messages."""
        done = papaver("ask", domain, text, "--json", "--home", self.folder, "--context", "locale=de", env=environment)
        assert done.returncode == 0, done
        events = [json.loads(line).get("event", {}) for line in done.stdout.splitlines()]
        messages = [event["message"] for event in events if event.get("type") == "message"]
        return [message for message in messages if message["role"] == "company"]

    @property
    def _shared(self) -> dict[str, str]:
        path = f"{ROOT / 'src'}:{ROOT}"
        return {"PAPAVER_CA_FILE": str(self.place.ca_file), "PYTHONPATH": path}


@pytest.fixture(name="world")
def make_world(tmp_path: Path) -> Iterator[World]:
    """The Personal Agent's keys, and its documents on loopback."""
    place = Place.make(tmp_path)
    assert papaver("init", ME, "--home", tmp_path).returncode == 0
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", tmp_path, "--serve", "127.0.0.1:0"]
    with started([*serving, *place.tls("agent.example")]) as identity:
        yield World(place, identity.said()["listening"].rpartition(":")[2])


@pytest.mark.requirement("5-01", "5.6-01")
def test_the_pair_of_the_readme_talks_and_goes_on_later(world: World) -> None:
    """Two processes, over TLS; and another program of the same agent resumes the conversation and closes it."""
    with world.company("docs_src.company:app") as environment:
        printed = world.run("personal_agent.py", environment)
        later = world.run("agent_later.py", environment)
    assert "user: Where is my order?\ncompany: You asked: Where is my order?\n" in printed
    assert printed.endswith("(idle)\n")
    asked = "And when will it arrive?"
    assert later == f"user: {asked}\ncompany: You asked: {asked}\nclosed\n"


def test_a_handler_has_what_its_page_says(world: World) -> None:
    """An idempotency key, a journal, structured details, the locale, and pieces of one answer."""
    with world.company("docs_src.company_handler:shop") as environment:
        (reply,) = world.ask("shop.example", "Please reserve one.", environment)
    assert reply["text"] == "I have reserved it."
    assert reply["data"]["reservation"].startswith("reservation ")
    assert (reply["data"]["asked"], reply["data"]["locale"]) == (["Please reserve one."], "de")
    with world.company("docs_src.company_handler:bakery", "bakery.example") as environment:
        (reply,) = world.ask("bakery.example", "Hello", environment)
    assert reply["text"] == "So far we said 1 thing. Anything else?"


def test_both_parties_run_on_this_machine_as_the_readme_says(tmp_path: Path) -> None:
    """Its commands one by one, at other ports: certificates, keys, both servers, and the program."""
    for sample in ("company.py", "personal_agent.py"):
        shutil.copy(ROOT / "docs_src" / sample, tmp_path)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    section = page.partition("## Both on this machine")[2].partition("\n## ")[0]
    free = {port: str(_free_port()) for port in ("8443", "8444")}
    lines = [
        shlex.split(re.sub("844[34]", lambda found: free[found[0]], line))
        for text in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        for line in text.splitlines()
    ]
    said = [line[1].partition("=") for line in lines if line[0] == "export"]
    printed = ""
    local = {**{name: value for name, _, value in said}, "PYTHONPATH": str(ROOT / "src")}
    with ExitStack() as running:
        for line in lines:
            if line[0] == "export":
                continue
            if line[0] == "python":
                command = line[1:]
            elif "serve" in line or "--serve" in line:
                serving = ["-m", "papaver.cli", *line[1:], "--json"]
                assert running.enter_context(started(serving, cwd=tmp_path, env=local)).said()["tls"] is True
                continue
            else:
                command = ["-m", "papaver.cli", *line[1:]]
            process = running.enter_context(started(command, cwd=tmp_path, env=local))
            assert process.process.stdout is not None
            printed = process.process.stdout.read()
            assert process.process.wait(30) == 0
    assert "company: You asked: Where is my order?" in printed


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_fastapi_route_has_a_verified_session_or_refuses(tmp_path: Path) -> None:
    """The dependency answers by itself; the route needs no check of its own."""
    command = ["-m", "papaver.cli", "company", "serve", "docs_src.company_fastapi:app", "--json", "--port", 0]
    with started(command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}) as company:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://{company.said()['listening']}/cart", timeout=10)
        refusal = json.load(caught.value)
        caught.value.close()
    assert (caught.value.code, refusal["error"]) == (400, "invalid_session")


def test_an_app_s_own_route_has_a_verified_session_or_refuses(tmp_path: Path) -> None:
    """Behind a proxy that ends TLS and strips a prefix; the document speaks of the public URL (B27)."""
    command = ["-m", "papaver.cli", "company", "serve", "docs_src.company_starlette:app", "--json", "--port", 0]
    with started(command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}) as company:
        origin = f"http://{company.said()['listening']}"
        request = urllib.request.Request(f"{origin}/.well-known/poppy.json", headers={"Host": "shop.example"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            document = json.load(answer)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{origin}/cart", timeout=10)
        refusal = json.load(caught.value)
        caught.value.close()
    assert document["apis"][0]["url"] == "https://api.shop.example/v1/openapi.json"
    assert "agent" not in document
    assert (caught.value.code, refusal["error"]) == (400, "invalid_session")
