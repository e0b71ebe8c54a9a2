"""When an endpoint cannot be reached: perhaps the Company's document says another one by now (3.4)."""

from __future__ import annotations

from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.live import LiveSession
from papaver.protocol.errors import DiscoveryFailed

__all__ = ["found_elsewhere"]


def found_elsewhere(live: LiveSession) -> Flow[bool]:
    """Discover past every cache → whether the same Company has its endpoint elsewhere; a new Session goes there then.

    What a failed discovery, or another Company in the place of this one, says about the endpoint is nothing.
    """
    opened = live.current
    if opened is None:
        return False
    try:
        outcome = yield from discover(live.setup, opened.found.domain, uncached=True)
    except DiscoveryFailed:
        return False
    entry = outcome.found.document.conversations()
    if outcome.found.identifier != opened.company_id or entry is None or entry.endpoint == opened.endpoint:
        return False
    live.leave(opened, outcome.found)
    return True
