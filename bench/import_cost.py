"""`import_cost`: what `import papaver` takes beyond bare Python, and how long `papaver --help` takes.

Each is a process of its own, in turn; `value` is the worse ratio of a measure to its bound.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.harness import Measure, interleave, report

ROUNDS = 21
IMPORT_MOST, HELP_MOST = 60.0, 250.0
HELP = "from papaver.cli.main import main; main()"


def process(arguments: Sequence[str]) -> Measure:
    def measure() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return measure


def main() -> None:
    arms = {
        "bare": process(["-c", "pass"]),
        "same": process(["-c", "pass"]),
        "import": process(["-c", "import papaver"]),
        "help": process(["-c", HELP, "--help"]),
    }
    taken = interleave(arms, ROUNDS)
    bare = statistics.median(taken["bare"])
    import_ms = statistics.median(i - b for i, b in zip(taken["import"], taken["bare"], strict=True)) * 1e3
    help_ms = statistics.median(taken["help"]) * 1e3
    a_a = statistics.median(one / other for one, other in zip(taken["bare"], taken["same"], strict=True))
    print(f"A/A  {a_a:.3f}")
    report(
        "import_cost",
        value=round(max(import_ms / IMPORT_MOST, help_ms / HELP_MOST), 3),
        baseline=round(bare * 1e3, 1),
        goal=1.0,
        unit="worst ratio to its bound; baseline: bare Python, in ms",
        import_ms=round(import_ms, 1),
        help_ms=round(help_ms, 1),
        import_goal=IMPORT_MOST,
        help_goal=HELP_MOST,
        a_a=round(a_a, 3),
        rounds=ROUNDS,
    )


if __name__ == "__main__":
    main()
