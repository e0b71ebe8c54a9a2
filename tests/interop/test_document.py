"""docs/interop.md names the versions that run, so nobody reads of a peer that was another."""

from __future__ import annotations

import json
import re

import pytest

from tests.interop.processes import ROOT

PAGE = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
NPM: dict[str, str] = json.loads((ROOT / "tests" / "node" / "package.json").read_text(encoding="utf-8"))["dependencies"]


@pytest.mark.parametrize("package", sorted(set(NPM) - {"axe-core"}))
def test_a_package_is_named_with_its_version(package: str) -> None:
    """axe-core is no peer: it looks at pages."""
    assert re.search(rf"{re.escape(package)}\b[^\n]*\b{re.escape(NPM[package])}\b", PAGE)


def test_authlib_is_named_with_the_version_of_the_lock_file() -> None:
    """The one peer from PyPI."""
    locked = re.search(r"^authlib==(\S+)", (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"), re.M)
    assert locked is not None
    assert f"| Authlib's client | {locked[1]} |" in PAGE


def test_the_lock_file_names_no_registry() -> None:
    """Packages come from whichever registry npm is told of, checked by their hashes."""
    lock = json.loads((ROOT / "tests" / "node" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert [name for name, one in packages.items() if "resolved" in one] == []
    assert [name for name, one in packages.items() if "integrity" not in one] == []
    assert lock["packages"][""]["dependencies"] == NPM
