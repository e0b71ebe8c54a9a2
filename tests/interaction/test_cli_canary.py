"""No command of the command line ever shows a key, a JWT or a signature, whatever it is asked for (rule 8)."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from tests.interop.processes import Place, papaver, started

ME = "https://agent.example/agent.json"
SHOP = "shop.example"
TOML = 'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nhandler = "shop:answer"\n'
HANDLER = "async def answer(turn): return f'You said: {turn.text}'\n"
JWT = re.compile(r"eyJ[\w-]{10,}\.[\w-]+\.[\w-]+")
HEADER = re.compile(r"eyJ[\w-]{20,}")


def test_nothing_that_any_command_prints_is_a_secret(tmp_path: Path) -> None:
    """Planted keys and everything shaped like a JWT, on stdout and stderr of both sides, with every exchange traced."""
    place = Place.make(tmp_path)
    (tmp_path / "papaver.toml").write_text(TOML)
    (tmp_path / "shop.py").write_text(HANDLER)
    home, told = tmp_path / "home", list[str]()
    ours = ["--home", home, "--trace"]

    def run(*arguments: object, status: int = 0) -> None:
        for more in ([], ["--json"]):
            done = papaver(*arguments, *ours, *more, cwd=tmp_path)
            told.extend([done.stdout, done.stderr])
            assert done.returncode == status, done

    run("init", ME)
    run("identity")
    agent_errors, company_errors = tmp_path / "agent.log", tmp_path / "company.log"
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", home, "--serve", "127.0.0.1:0", "--trace"]
    with started([*serving, *place.tls("agent.example")], errors=agent_errors) as identity:
        at = f"agent.example:443={identity.said()['listening']}"
        serve = ["-m", "papaver.cli", "company", "serve", "--json", "--port", 0, "--trace", *place.tls(SHOP)]
        local = ["--resolve", at, "--ca-file", place.ca_file]
        with started([*serve, *local], cwd=tmp_path, errors=company_errors) as company:
            ours += ["--resolve", f"{SHOP}:443={company.said()['listening']}", "--ca-file", place.ca_file]
            run("discover", SHOP)
            run("ask", SHOP, "Hello")
            run("ask", SHOP, "Hello", "--anonymous", "--agent-id", "shopping")
            run("status")
            run("company", "clients")
            run("company", "block", ME)
            run("ask", SHOP, "Hello again", status=1)
            run("ask", SHOP, "And?", "--conversation", "cnv_none", status=1)
    told += [agent_errors.read_text(), company_errors.read_text()]

    shown = "\n".join(told)
    assert "> POST https://shop.example/poppy/conversations" in shown
    assert "client.accepted" in shown
    (key,) = json.loads((home / "keys.json").read_text())["keys"]
    vault_key = (home / "agent.db.key").read_text().strip()
    planted = [key["d"], vault_key, base64.urlsafe_b64decode(vault_key).hex()]
    assert [one for one in planted if one in shown] == []
    assert JWT.findall(shown) == []
    assert HEADER.findall(shown) == []
    assert "PRIVATE KEY" not in shown
