"""The Personal Agent's door and the guarded network, over the library httpx2; each name is imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from papaver.adapters.httpx2.fetcher import GuardedFetcher
    from papaver.adapters.httpx2.network import Network
    from papaver.adapters.httpx2.personal_agent import PersonalAgent
    from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
    from papaver.adapters.httpx2.transport import GuardedTransport, open_client

__all__ = [
    "GuardedFetcher",
    "GuardedTransport",
    "Network",
    "NetworkSettings",
    "PersonalAgent",
    "ResolveMap",
    "open_client",
]

_HOME = {
    "GuardedFetcher": "fetcher",
    "GuardedTransport": "transport",
    "Network": "network",
    "NetworkSettings": "resolve_map",
    "PersonalAgent": "personal_agent",
    "ResolveMap": "resolve_map",
    "open_client": "transport",
}


def __getattr__(name: str) -> object:
    """Import a name from its module. Raises AttributeError for a name that is not exported here."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
