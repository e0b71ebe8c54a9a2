"""An SSE client that others wrote reads our streams: npm's `eventsource`, which connects again by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from papaver.adapters.asgi import CompanyEndpoint
from papaver.ports.deltas import Delta
from papaver.protocol.terms import ConversationId, MessageId
from papaver.testing.company import VERSION, CompanyBench, company_bench
from tests.house.sockets import listening
from tests.interop.node import SCRIPTS, node, node_environment

pytestmark = [pytest.mark.anyio, pytest.mark.needs("node", "npm")]

WITHIN = 60.0


class Source:
    """The process that reads. `connected` is what each of its connections sent as Last-Event-ID."""

    def __init__(self, bench: CompanyBench, conversation: str, process: asyncio.subprocess.Process) -> None:
        self._bench, self._process = bench, process
        self._url = f"{bench.company.offer.endpoint}/{conversation}/events"
        self.connected: list[str | None] = []

    async def told(self) -> dict[str, Any]:
        """The next thing that is no new connection."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        while True:
            async with asyncio.timeout(WITHIN):
                line = await self._process.stdout.readline()
            found: dict[str, Any] = json.loads(line)
            if "connects" not in found:
                return found
            assert found["accept"] == "text/event-stream"
            self.connected.append(found["connects"])
            header = self._bench.agent.header("GET", self._url, self._bench.company.id, now=self._bench.clock.now())
            fields = {"poppy-session": header, "poppy-version": VERSION}
            self._process.stdin.write(json.dumps(fields).encode() + b"\n")


@pytest.mark.requirement("8.6-04", "8.6-06", "8.6-08")
async def test_eventsource_reads_on_over_ended_streams_and_stops_at_the_close(tmp_path: Any) -> None:
    """Each event once and in order, pieces beside them; a stream lasts a second here. After the close it stops."""
    async with company_bench(turns=False, stream_longest=1, stream_retry=0, requests_per_user=10_000) as bench:
        conversation = (await bench.start("first")).json["conversation_id"]
        tables: Any = await bench.company.store.tables(bench.company.id)
        async with listening(CompanyEndpoint(bench.company)) as port:
            process = await asyncio.create_subprocess_exec(
                *node(
                    SCRIPTS / "event_source.mjs", f"http://127.0.0.1:{port}/poppy/conversations/{conversation}/events"
                ),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=node_environment({}, tmp_path / "none"),
            )
            try:
                source = Source(bench, conversation, process)
                first = await source.told()
                assert first["data"]["message"]["text"] == "first"
                tables.deltas.publish(ConversationId(conversation), Delta(MessageId("msg_r"), "piece", 0))
                piece = await source.told()
                assert piece == {
                    "type": "text-delta",
                    "id": first["id"],
                    "data": {"message_id": "msg_r", "text": "piece"},
                }
                last = first["id"]
                for number in range(3):
                    listening_again = asyncio.create_task(source.told())
                    while len(source.connected) < number + 2:
                        await bench.tick()
                    assert source.connected[-1] == last
                    await bench.say(conversation, str(number))
                    event = await listening_again
                    assert (event["data"]["message"]["text"], event["id"]) == (str(number), event["data"]["id"])
                    last = event["id"]
                await bench.send("POST", f"/{conversation}/close", {})
                closed = await source.told()
                assert (closed["data"]["type"], closed["data"]["status"]) == ("state", "closed")
                assert "content type" in (await source.told())["over"]
                assert source.connected[-1] == closed["id"]
                assert await process.wait() == 0
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
