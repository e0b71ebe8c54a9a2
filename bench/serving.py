"""Server figures: the server pinned to one core, the generator to the other, requests made before the round.

`Server` starts a process of `bench.server`, `drive` sends prepared requests over kept connections: one epoll loop and
no parsing beyond the length, so that the generator is never what a figure measures.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["CORES", "Load", "Place", "Server", "drive", "http_request", "response_of", "store_place", "wait_idle"]

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, GENERATOR_CORE = CORES[0], CORES[-1]
FSYNC_MOST = 100e-6
"""A slower disk than this leaves the server idle for over a tenth of a round of 16 connections."""
MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store lies. `fsync_us`: what fdatasync takes on the disk of the temporary folder, median."""

    folder: Path
    kind: str
    fsync_us: float


@contextmanager
def store_place() -> Generator[Place]:
    """A folder for the store: on the disk, or in memory where that disk would make each round void.

    All calls to fsync are made in both. What the disk's share would have been is told by `fsync_us`.
    """
    disk = Path(tempfile.mkdtemp(prefix="papaver-bench-"))
    fsync = _fsync_seconds(disk)
    memory = fsync > FSYNC_MOST and os.access(MEMORY, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="papaver-bench-", dir=MEMORY)) if memory else disk
    try:
        yield Place(folder, "memory" if memory else "disk", round(fsync * 1e6, 1))
    finally:
        for one in {disk, folder}:
            shutil.rmtree(one)


def _fsync_seconds(folder: Path) -> float:
    taken: list[float] = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(65536))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


class Server:
    """A server process on one core, listening on a loopback port without TLS."""

    def __init__(self, *arguments: str, core: int = SERVER_CORE) -> None:
        command = [sys.executable, "-m", "bench.server", "--core", str(core), *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("port "):
            raise RuntimeError(f"the server did not start: {line!r}")
        self.port = int(line.removeprefix("port "))
        self.pid = self._process.pid

    def cpu(self) -> float:
        """Seconds of processor time that it has used, all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes of memory that are its own: resident and not shared."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


@dataclass(frozen=True, slots=True)
class Load:
    """What one round measured. `cpu`: the server's share of its core. `cpu_us`: of it, for one request."""

    rate: float
    cpu: float
    cpu_us: float
    statuses: dict[int, int]
    latencies: list[float]


def http_request(method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "host: shop.example", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def response_of(octets: bytes) -> tuple[int, bytes] | None:
    """Status and body of one response; None while it is not complete."""
    end = octets.find(b"\r\n\r\n")
    if end < 0:
        return None
    at = octets.find(b"content-length: ", 0, end)
    length = int(octets[at + 16 : octets.index(b"\r\n", at)]) if at >= 0 else 0
    if len(octets) < end + 4 + length:
        return None
    return int(octets[9:12]), octets[end + 4 : end + 4 + length]


def drive(
    server: Server,
    requests: Sequence[bytes],
    connections: int = 16,
    answers: list[bytes] | None = None,
    core: int | None = GENERATOR_CORE,
) -> Load:
    """Send every request over so many connections, on each one after the other. `answers` collects the bodies."""
    os.sched_setaffinity(0, CORES if core is None else {core})
    statuses: dict[int, int] = {}
    latencies: list[float] = []
    todo = deque(requests)
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    started: dict[int, float] = {}
    partial: dict[int, bytes] = {}
    for _ in range(min(connections, len(requests))):
        one = socket.create_connection(("127.0.0.1", server.port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[one.fileno()] = one
        poll.register(one.fileno(), select.EPOLLIN)
    clock = time.perf_counter
    cpu, start, left = server.cpu(), clock(), len(requests)
    for number, one in sockets.items():
        started[number] = clock()
        one.sendall(todo.popleft())
    while left:
        for number, _ in poll.poll(30):
            one = sockets[number]
            octets = partial.pop(number, b"") + one.recv(1 << 20)
            found = response_of(octets)
            if found is None:
                partial[number] = octets
                continue
            now = clock()
            latencies.append(now - started[number])
            statuses[found[0]] = statuses.get(found[0], 0) + 1
            if answers is not None:
                answers.append(found[1])
            left -= 1
            if todo:
                started[number] = now
                one.sendall(todo.popleft())
    seconds, used = clock() - start, server.cpu() - cpu
    for one in sockets.values():
        one.close()
    poll.close()
    return Load(len(requests) / seconds, used / seconds, used / len(requests) * 1e6, statuses, latencies)


def wait_idle(server: Server, seconds: float = 60) -> None:
    """Until the server uses next to no processor time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        before = server.cpu()
        time.sleep(0.3)
        if server.cpu() - before < 0.03:
            return
    raise RuntimeError("the server does not come to rest")
