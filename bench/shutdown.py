"""`shutdown`: from SIGTERM to the end of a process with 100 polls, 100 streams and 20 turns open, in seconds.

Each poll and each stream has its proper end, and no lease is left behind. The store is a file on the disk.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.agent import Agent
from bench.harness import report
from bench.serving import response_of

OPEN, TURNS, ROUNDS = 100, 20, 5
GOAL = 5.0
NEVER = "3600"
"""Seconds that the handler would take."""
ROOT = Path(__file__).parents[1]
STREAM = b"\r\naccept: text/event-stream\r\n"


def main() -> None:
    taken: list[float] = []
    leases = 0
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="papaver-bench-") as folder:
            seconds, left = ended(Path(folder))
        print(f"round {number + 1}: {seconds:.2f} s, {left} leases left", flush=True)
        taken.append(seconds)
        leases += left
    report(
        "shutdown",
        value=round(statistics.median(taken), 3),
        baseline=GOAL,
        goal=GOAL,
        unit="seconds from SIGTERM to the end; baseline is the bound",
        worst=round(max(taken), 3),
        leases_left=leases,
        polls=OPEN,
        streams=OPEN,
        turns=TURNS,
        rounds=ROUNDS,
    )
    if leases or max(taken) > GOAL:
        sys.exit(1)


def ended(folder: Path) -> tuple[float, int]:
    """Seconds until it was gone, and how many leases it left."""
    agent, store = Agent(), folder / "poppy.db"
    documents = agent.write_documents(folder / "documents.json")
    command = [sys.executable, "-m", "bench._fault_replica", str(store), "", str(documents), NEVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        pid = int(process.stdout.readline().split()[1])
        port = int(process.stdout.readline().split()[2])
        try:
            waiting = [opened(port, agent, user) for user in range(OPEN)]
            while leased(store) < TURNS:
                time.sleep(0.05)
            os.kill(pid, signal.SIGTERM)
            start = time.perf_counter()
            for poll, stream in waiting:
                check_ends(poll, stream)
            assert process.stdout.readline().startswith("ended ")
            return time.perf_counter() - start, leased(store)
        finally:
            process.stdin.close()


def opened(port: int, agent: Agent, user: int) -> tuple[socket.socket, socket.socket]:
    """A poll and a stream, each in a conversation whose turn is due or runs."""
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(agent.request("POST", "", user, agent.message(), "wait=0"))
    octets = b""
    while (answer := response_of(octets)) is None:
        octets += one.recv(65_536)
    page = json.loads(answer[1])
    assert answer[0] == 201, page
    suffix, query = f"/{page['conversation_id']}/events", f"cursor={page['cursor']}"
    one.sendall(agent.request("GET", suffix, user, query=f"{query}&wait=25"))
    other = socket.create_connection(("127.0.0.1", port))
    other.sendall(agent.request("GET", suffix, user, query=query).replace(b"\r\n", STREAM, 1))
    head = b""
    while b"\r\n\r\n" not in head:
        head += other.recv(4096)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return one, other


def check_ends(poll: socket.socket, stream: socket.socket) -> None:
    """The poll has an empty page, the stream its last chunk."""
    octets = b""
    while (answer := response_of(octets)) is None:
        more = poll.recv(65_536)
        assert more, "a poll broke off"
        octets += more
    assert answer[0] == 200, answer
    octets = b""
    while more := stream.recv(65_536):
        octets += more
    assert octets.endswith(b"0\r\n\r\n"), octets
    poll.close()
    stream.close()


def leased(store: Path) -> int:
    connection = sqlite3.connect(store)
    try:
        return connection.execute("SELECT count(*) FROM conversations WHERE holder IS NOT NULL").fetchone()[0]
    finally:
        connection.close()


if __name__ == "__main__":
    main()
