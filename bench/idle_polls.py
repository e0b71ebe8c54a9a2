"""`idle_polls`: what 2,000 idle long polls cost one process, in memory and in processor time, within one hold.

Each poll is on a connection of its own; `value` is in bytes for one, the server's share of its core is for all.
"""

from __future__ import annotations

import socket
import statistics
import time

from bench.agent import Agent
from bench.harness import report
from bench.serving import Server, store_place, wait_idle

POLLS, HOLD, WATCHED, ROUNDS = 2000, 25, 10.0, 5
BYTES_MOST, CPU_MOST = 30_000, 3.0


def main() -> None:
    agent = Agent()
    each: list[float] = []
    shares: list[float] = []
    with store_place() as place:
        documents = agent.write_documents(place.folder / "documents.json")
        arguments = ("--store", f"{place.folder}/poppy.db", "--documents", str(documents))
        for number in range(ROUNDS):
            with Server(*arguments) as company:
                known = list(agent.started(company, 1000).items())
                wait_idle(company)
                size, share = hold(company, [read_of(agent, *known[n % len(known)]) for n in range(POLLS)])
            print(f"round {number + 1}: {size:.0f} bytes for one, {share:.2f} % of a core for all", flush=True)
            each.append(size)
            shares.append(share)
    report(
        "idle_polls",
        value=round(statistics.median(each)),
        baseline=BYTES_MOST,
        goal=BYTES_MOST,
        unit="bytes for one poll; baseline is the bound",
        bytes_each=round(statistics.median(each)),
        cpu_percent=round(statistics.median(shares), 2),
        cpu_goal=CPU_MOST,
        polls=POLLS,
        rounds=ROUNDS,
    )


def read_of(agent: Agent, conversation: str, cursor: str) -> bytes:
    """A read that waits for what comes after everything that was said."""
    return agent.read(conversation, f"cursor={cursor}&wait={HOLD}")


def hold(server: Server, requests: list[bytes]) -> tuple[float, float]:
    """Bytes for one open poll, and the percentage of a core for all of them."""
    before = server.memory()
    start = time.monotonic()
    polls: list[socket.socket] = []
    for request in requests:
        one = socket.create_connection(("127.0.0.1", server.port))
        one.sendall(request)
        polls.append(one)
    wait_idle(server)
    size = (server.memory() - before) / len(requests)
    cpu, since = server.cpu(), time.monotonic()
    time.sleep(WATCHED)
    share = (server.cpu() - cpu) / (time.monotonic() - since) * 100
    assert time.monotonic() - start < HOLD, "the first polls were answered meanwhile"
    for one in polls:
        one.setblocking(False)
        try:
            early = one.recv(1)
        except BlockingIOError:
            early = b"idle"
        assert early == b"idle", "a poll was answered"
        one.close()
    return size, share


if __name__ == "__main__":
    main()
