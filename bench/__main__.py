"""`python -m bench [figure…]`: each figure in its own process, so that none warms another's caches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOT_FIGURES = {
    "__init__",
    "__main__",
    "accounts",
    "agent",
    "filling",
    "harness",
    "in_postgres",
    "rounds",
    "server",
    "serving",
}
ROOT = Path(__file__).parents[1]


def figures() -> list[str]:
    """The names of all figures here. A file that begins with an underscore is a part of one."""
    names = {path.stem for path in Path(__file__).parent.glob("*.py")}
    return sorted(name for name in names - NOT_FIGURES if not name.startswith("_"))


def main(wanted: list[str]) -> int:
    known = figures()
    if unknown := [name for name in wanted if name not in known]:
        print(f"no such figure: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in wanted or known:
        print(f"── {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"bench.{name}"], cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
