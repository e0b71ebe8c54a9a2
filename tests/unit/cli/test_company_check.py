"""`papaver company check`: right or wrong, and what would be published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from papaver.cli.main import cli
from tests.house.second_module import module_named

SILENT = """
from papaver import Company, SqliteStore
company = Company(domain="shop.example", name="Shop", base_url="https://shop.example/poppy", store=SqliteStore("s.db"))
"""
TOML = 'domain = "{domain}"\nname = "Shop"\nbase_url = "{base_url}"\nwebsite = true\n'


def _check(folder: Path, *options: str, domain: str = "shop.example", base_url: str = "https://shop.example/poppy"):
    (folder / "papaver.toml").write_text(TOML.format(domain=domain, base_url=base_url))
    return CliRunner().invoke(cli, ["company", "check", "--config", str(folder / "papaver.toml"), *options])


@pytest.mark.requirement("3-01")
def test_the_documents_are_shown_with_their_urls(tmp_path: Path) -> None:
    """On the Company's own domain, over https, at the well-known path."""
    done = _check(tmp_path)
    assert done.exit_code == 0
    assert "https://shop.example/.well-known/poppy.json\n{\n" in done.stdout
    assert "conversations at (none offered)" in done.stdout


def test_the_same_files_can_be_written_for_static_hosting(tmp_path: Path) -> None:
    """Byte for byte what a server would answer, but for white space; nothing else appears."""
    out = tmp_path / "public"
    done = _check(tmp_path, "--out", str(out), "--json")
    assert done.exit_code == 0
    assert [path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()] == [".well-known/poppy.json"]
    assert json.loads((out / ".well-known" / "poppy.json").read_text()) == json.loads(done.stdout)["document"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its name."""
    (tmp_path / "file").write_text("")
    done = _check(tmp_path, "--out", str(tmp_path / "file" / "x"))
    assert done.exit_code == 1
    assert "[check.out]" in done.stderr


@pytest.mark.parametrize(
    ("domain", "base_url", "rule"),
    [
        ("Shop.example", "https://shop.example/poppy", "offer.domain-is-a-name"),
        ("shop.example", "http://shop.example/poppy", "offer.base-url"),
        ("shop.example", "https://shop.example/poppy/", "offer.base-url"),
    ],
)
def test_a_failed_comparison_names_the_value_and_the_rule(
    tmp_path: Path, domain: str, base_url: str, rule: str
) -> None:
    """For people and for scripts."""
    told = json.loads(_check(tmp_path, "--json", domain=domain, base_url=base_url).stdout)
    assert told["rule"] == rule
    assert domain in told["detail"] or base_url in told["detail"]
    assert told["next"]


def test_a_company_without_its_handler_is_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not start either."""
    monkeypatch.chdir(tmp_path)
    module = module_named(tmp_path, SILENT)
    told = json.loads(CliRunner().invoke(cli, ["company", "check", f"{module}:company", "--json"]).stdout)
    assert told["rule"] == "configuration.one-handler"


def test_a_target_without_a_company_is_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that nobody added a Company to."""
    monkeypatch.chdir(tmp_path)
    module = module_named(tmp_path, "async def app(scope, receive, send): ...\n")
    told = json.loads(CliRunner().invoke(cli, ["company", "check", f"{module}:app", "--json"]).stdout)
    assert (told["rule"], told["detail"]) == ("config.one-company", "expected one Company, found none")
    assert "app:company or app:app" in told["next"]


def test_a_store_in_a_folder_that_is_not_there_is_noted(tmp_path: Path) -> None:
    """It will be made, which is not what a mistyped path is meant to do."""
    (tmp_path / "papaver.toml").write_text(
        f'store = "gone/poppy.db"\n{TOML.format(domain="shop.example", base_url="https://shop.example/poppy")}'
    )
    done = CliRunner().invoke(cli, ["company", "check", "--config", str(tmp_path / "papaver.toml")])
    assert done.exit_code == 0
    assert f"the store's folder {tmp_path / 'gone'} is not there" in done.stderr
    assert "not there" not in _check(tmp_path).stderr
