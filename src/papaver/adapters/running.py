"""`async with running(company) as handle`: opens the store, wires time, randomness and network, and runs turns."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import FrameType

from papaver.adapters.asgi import CompanyEndpoint
from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.adapters.system import SystemClock, SystemIds
from papaver.company.app import Company
from papaver.company.external_issuer import ExternalIssuer
from papaver.ports.pages import Pages
from papaver.ports.personal_agent import Poster
from papaver.ports.staff_pages import StaffPages
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.ports.telemetry import Telemetry

__all__ = ["pages_of", "running", "staff_pages_of"]


@asynccontextmanager
async def running(
    company: Company,
    *,
    network: NetworkSettings | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    fetcher: Fetcher | None = None,
    turns: bool = True,
    telemetry: Telemetry | None = None,
) -> AsyncGenerator[CompanyEndpoint]:
    """Run a Company inside an event loop; yields it as an ASGI app. For several on one store, nest the blocks.

    `turns=False` serves requests only: another process has to run turns, else each POST raises.
    `telemetry`: such as `OpenTelemetry()` of `papaver.adapters.otel`.
    SIGTERM and SIGINT end open polls at once; whoever handled the signal before still does.
    """
    async with AsyncExitStack() as stack:
        if fetcher is None:
            fetcher = await stack.enter_async_context(GuardedFetcher(network or NetworkSettings()))
        if not company.store.is_open:
            await company.store.open()
            stack.push_async_callback(company.store.close)
        await company.wire(
            clock or SystemClock(),
            ids or SystemIds(),
            fetcher,
            pages=pages_of(company),
            poster=await _poster(company, network, stack),
            staff_pages=staff_pages_of(company),
            turns_elsewhere=not turns,
            telemetry=telemetry,
        )
        stack.callback(company.unwire)
        stack.enter_context(_on_signals(company.stop))
        if turns:
            stack.push_async_callback(_ended, company.start_turns())
        else:
            stack.push_async_callback(_cancelled, company.start_sweeping())
        stack.callback(company.stop)
        yield CompanyEndpoint(company)


def pages_of(company: Company) -> Pages | None:
    """What renders the pages of a Company that signs Users in itself; nothing is imported for any other."""
    if company.sign_in is None or not company.sign_in.shows_pages:
        return None
    from papaver.screens import HtmlPages

    return HtmlPages()


def staff_pages_of(company: Company) -> StaffPages | None:
    """What renders the staff console of a Company that has one; nothing is imported for any other."""
    if not company.has_console:
        return None
    from papaver.screens.staff import HtmlStaffPages

    return HtmlStaffPages()


async def _poster(company: Company, network: NetworkSettings | None, stack: AsyncExitStack) -> Poster | None:
    """The way to the issuer of a Company that asks it about tokens; nothing is imported for any other."""
    if company.sign_in is None or company.sign_in.shows_pages:
        return None
    from papaver.adapters.httpx2.poster import GuardedPoster

    asked = company.sign_in.introspection if isinstance(company.sign_in, ExternalIssuer) else None
    poster = GuardedPoster(network or NetworkSettings(), authorized_at=None if asked is None else asked.url)
    stack.push_async_callback(poster.aclose)
    return poster


async def _cancelled(sweeping: asyncio.Task[None]) -> None:
    sweeping.cancel()
    await asyncio.wait({sweeping})


async def _ended(turns: asyncio.Task[None]) -> None:
    """However it ended, this block goes on to close what it has opened."""
    await asyncio.wait({turns})
    if not turns.cancelled():
        turns.result()


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Generator[None]:
    """Call `stop` as soon as the process is told to end, before the server waits for its open connections."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def told(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        earlier = before[signal.Signals(number)]
        if callable(earlier):
            earlier(number, frame)
        elif earlier is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, told)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)
