"""Node processes to which the names of a test are on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.house import npm
from tests.house.services import program
from tests.interop.processes import ROOT, environment

__all__ = ["SCRIPTS", "node", "node_environment"]

SCRIPTS = ROOT / "tests" / "node"


def node(*arguments: object) -> list[str]:
    """The command line: a script and what it is told."""
    path = program("PAPAVER_NODE", "node")
    assert path is not None
    return [path, "--import", str(SCRIPTS / "hosts.mjs"), *map(str, arguments)]


def node_environment(hosts: Mapping[str, int], ca_file: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """These names are at these ports, our authority is one of its own, and the packages are where we put them."""
    own = {"PAPAVER_HOSTS": json.dumps(dict(hosts)), "NODE_EXTRA_CA_CERTS": str(ca_file)}
    return environment({**own, "PAPAVER_MODULES": str(npm.MODULES), **(more or {})})
