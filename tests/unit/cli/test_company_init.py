"""`papaver company init`: what it writes works as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from papaver.cli.main import cli


def test_what_is_written_is_a_company_that_passes_its_own_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a change, and under the public URL that it names (B27)."""
    folder = tmp_path / "shop"
    made = CliRunner().invoke(cli, ["company", "init", str(folder), "--json"])
    assert [json.loads(line)["file"] for line in made.stdout.splitlines()] == [
        str(folder / "papaver.toml"),
        str(folder / "shop.py"),
    ]
    checked = CliRunner().invoke(cli, ["company", "check", "--json", "--config", str(folder / "papaver.toml")])
    assert checked.exit_code == 0, checked.output
    published = json.loads(checked.stdout)
    assert published["url"] == "https://shop.example/.well-known/poppy.json"
    assert published["document"]["agent"]["protocols"][0]["endpoint"].startswith("https://shop.example/poppy/")


def test_files_that_are_there_are_left_alone(tmp_path: Path) -> None:
    """All of them, and nothing is written beside."""
    (tmp_path / "shop.py").write_text("mine")
    done = CliRunner().invoke(cli, ["company", "init", str(tmp_path)])
    assert done.exit_code == 1
    assert "[init.nothing-there]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["shop.py"]
    assert (tmp_path / "shop.py").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(cli, ["company", "init", str(tmp_path / "file" / "shop")])
    assert done.exit_code == 1
    assert "[init.writes]" in done.stderr
