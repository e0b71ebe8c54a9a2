"""`idle_streams`: what 5,000 idle event streams cost one process, in memory and in processor time.

Each stream is on a connection of its own; `value` is in bytes for one, the server's share of its core is for all, over
two rounds of keep-alive comments.
"""

from __future__ import annotations

import socket
import statistics
import time

from bench.agent import Agent
from bench.harness import report
from bench.serving import Server, store_place, wait_idle

STREAMS, WATCHED, ROUNDS = 5000, 30.0, 3
BYTES_MOST, CPU_MOST = 40_000, 5.0
ACCEPT = b"\r\naccept: text/event-stream\r\n"


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
                size, share = hold(company, agent, [known[n % len(known)] for n in range(STREAMS)])
            print(f"round {number + 1}: {size:.0f} bytes for one, {share:.2f} % of a core for all", flush=True)
            each.append(size)
            shares.append(share)
    report(
        "idle_streams",
        value=round(statistics.median(each)),
        baseline=BYTES_MOST,
        goal=BYTES_MOST,
        unit="bytes for one stream; baseline is the bound",
        cpu_percent=round(statistics.median(shares), 2),
        cpu_goal=CPU_MOST,
        streams=STREAMS,
        rounds=ROUNDS,
    )


def hold(server: Server, agent: Agent, places: list[tuple[str, str]]) -> tuple[float, float]:
    """Bytes for one open stream, and the percentage of a core for all of them."""
    before = server.memory()
    streams = [opened(server, agent, *place) for place in places]
    wait_idle(server, 120)
    size = (server.memory() - before) / len(streams)
    cpu, since = server.cpu(), time.monotonic()
    time.sleep(WATCHED)
    share = (server.cpu() - cpu) / (time.monotonic() - since) * 100
    for one in streams:
        one.setblocking(False)
        told = one.recv(65_536)
        assert b"data:" not in told, "a stream was told something"
        assert b"\r\n0\r\n" not in told, "a stream has ended"
        one.close()
    return size, share


def opened(server: Server, agent: Agent, conversation: str, cursor: str) -> socket.socket:
    """A stream of what comes after everything that was said; its head is there."""
    one = socket.create_connection(("127.0.0.1", server.port))
    one.sendall(agent.read(conversation, f"cursor={cursor}").replace(b"\r\n", ACCEPT, 1))
    head = b""
    while b"\r\n\r\n" not in head:
        head += one.recv(4096)
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert b"text/event-stream" in head, head
    return one


if __name__ == "__main__":
    main()
