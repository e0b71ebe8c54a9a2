"""`docs/limits.md` says what the settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import limits


@pytest.mark.requirement("ca-110")
def test_the_page_is_what_the_settings_say() -> None:
    """Whoever changes a default runs `python -m tools.limits` too."""
    assert limits.PAGE.read_text(encoding="utf-8") == limits.page()
    assert limits.main(["--check"]) == 0


def test_a_stale_page_is_told_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` fails and names the remedy, the remedy works."""
    page = tmp_path / "limits.md"
    page.write_text("stale", encoding="utf-8")
    monkeypatch.setattr(limits, "PAGE", page)
    assert limits.main(["--check"]) == 1
    assert "python -m tools.limits" in capsys.readouterr().err
    assert limits.main([]) == 0
    assert limits.main(["--check"]) == 0
