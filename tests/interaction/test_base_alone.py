"""The base alone: the command line and the Personal Agent, with every package of every extra taken away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.interop.processes import ROOT, Place, environment, papaver, started

ME = "https://agent.example/agent.json"
SHOP = "shop.example"
TOML = 'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nhandler = "shop:answer"\n'
HANDLER = "async def answer(turn): return f'You said: {turn.text}'\n"
MODULES = {
    "argon2-cffi": ["argon2"],
    "asyncpg": ["asyncpg"],
    "fastapi": ["fastapi"],
    "gmpy2": ["gmpy2"],
    "http-message-signatures": ["http_message_signatures"],
    "jinja2": ["jinja2"],
    "keyring": ["keyring"],
    "mcp": ["mcp"],
    "opentelemetry-api": ["opentelemetry"],
    "playwright": ["playwright"],
    "pydantic-ai-slim": ["pydantic_ai", "pydantic_graph", "genai_prices", "griffe", "logfire_api"],
    "python-multipart": ["multipart", "python_multipart"],
    "redis": ["redis"],
    "segno": ["segno"],
    "starlette": ["starlette"],
    "uvicorn": ["uvicorn", "uvloop", "httptools", "websockets", "watchfiles", "dotenv", "yaml"],
}
"""What the packages of our extras, and what only they bring, are imported as."""
TAKEN = [module for modules in MODULES.values() for module in modules]


def without(folder: Path) -> dict[str, str]:
    """An environment in which none of them can be imported."""
    (folder / "bare").mkdir(exist_ok=True)
    source = f"import sys\n\nfor name in {TAKEN}:\n    sys.modules[name] = None\n"
    (folder / "bare" / "sitecustomize.py").write_text(source)
    return {"PYTHONPATH": os.pathsep.join([str(folder / "bare"), environment()["PYTHONPATH"]])}


def test_every_package_of_every_extra_is_taken_away() -> None:
    """One that is added to an extra is added here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    names = {one.partition(">")[0].partition("[")[0] for one in extras} - {project["name"]}
    assert names == MODULES.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *([*command.split(), "--help"] for command in (
            "init", "identity", "discover", "ask", "sign-in", "sign-out", "status", "api", "inspect", "demo",
            "requirements", "company",
            "company init", "company check", "company serve", "company clients", "company allow", "company block",
        )),
        ["requirements", "--json"],
        ["company", "check", "--json"],
        ["company", "clients", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_that_needs_no_extra_asks_for_none(tmp_path: Path, arguments: list[str]) -> None:
    """Its help, and whatever serves nothing."""
    (tmp_path / "papaver.toml").write_text(TOML)
    (tmp_path / "shop.py").write_text(HANDLER)
    done = papaver(*arguments, cwd=tmp_path, env=without(tmp_path))
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr


def test_a_personal_agent_needs_no_extra(tmp_path: Path) -> None:
    """From its keys over its published documents to an answer, with a Company that has them all."""
    place, bare = Place.make(tmp_path), without(tmp_path)
    (tmp_path / "papaver.toml").write_text(TOML)
    (tmp_path / "shop.py").write_text(HANDLER)
    home = ["--home", tmp_path / "home"]
    assert papaver("init", ME, *home, env=bare).returncode == 0
    serving = ["-m", "papaver.cli", "identity", "--json", *home, "--serve", "127.0.0.1:0", *place.tls("agent.example")]
    with started(serving, env=bare) as identity:
        at = ["--resolve", f"agent.example:443={identity.said()['listening']}", "--ca-file", place.ca_file]
        serve = ["-m", "papaver.cli", "company", "serve", "--json", "--port", 0, *place.tls(SHOP), *at]
        with started(serve, cwd=tmp_path) as company:
            local = ["--resolve", f"{SHOP}:443={company.said()['listening']}", "--ca-file", place.ca_file, *home]
            assert papaver("discover", SHOP, *local, env=bare).returncode == 0
            asked = papaver("ask", SHOP, "Hello", *local, env=bare)
            assert (asked.returncode, "You said: Hello" in asked.stdout) == (0, True), asked
            assert papaver("status", *local, env=bare).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "extra"), [(["company", "serve"], "[server]"), (["demo"], "[demo]")], ids=["serve", "demo"]
)
def test_what_needs_an_extra_says_which(tmp_path: Path, arguments: list[str], extra: str) -> None:
    """And what to type."""
    (tmp_path / "papaver.toml").write_text(TOML)
    (tmp_path / "shop.py").write_text(HANDLER)
    done = papaver(*arguments, "--json", cwd=tmp_path, env=without(tmp_path))
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["next"].startswith("pip install ")
    assert extra in told["next"]


@pytest.mark.parametrize("taken", ["fastapi", "starlette"])
def test_poppy_without_its_extra_names_the_remedy(taken: str) -> None:
    """On the name that was asked for; every other public name is there all the same."""
    code = (
        f"import sys\nsys.modules[{taken!r}] = None\nimport papaver\n"
        "for name in papaver.__all__:\n"
        "    try:\n"
        "        getattr(papaver, name)\n"
        "    except ImportError as error:\n"
        "        print(name, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"Poppy papaver.Poppy needs {taken}")
    assert "papaver[fastapi]" in line
    assert "papaver.adapters.starlette" in line
