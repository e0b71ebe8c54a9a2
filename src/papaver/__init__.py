"""The public names of papaver, each imported from its room when it is first asked for (PEP 562).

`import papaver` itself imports no room, so a program pays only for what it uses: `papaver.jose` without
a web framework, a Company without an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from papaver.adapters.fastapi import Poppy
    from papaver.adapters.httpx2 import PersonalAgent
    from papaver.adapters.keyfile import KeyFile
    from papaver.company import Company, EmbeddedIssuer, ExternalIssuer, Reply, Scope, ScopesNeeded, Turn
    from papaver.protocol.conversation.model import (
        Author,
        AuthorizationNeeded,
        DirectClosed,
        DirectOpened,
        Message,
        MessageAdded,
        StateChanged,
        UserRequested,
    )
    from papaver.protocol.errors import (
        ConfigurationError,
        DiscoveryFailed,
        Misbehaved,
        NotADestination,
        PoppyError,
        Refused,
        SignInNeeded,
    )
    from papaver.protocol.session import VerifiedSession
    from papaver.protocol.signed_in import SignedInSession
    from papaver.protocol.terms import AccountId
    from papaver.stores.sqlite import SqliteStore
    from papaver.stores.sqlite.vault import SqliteVault
    from papaver.values.errors import PapaverError

__all__ = [
    "AccountId",
    "Author",
    "AuthorizationNeeded",
    "Company",
    "ConfigurationError",
    "DirectClosed",
    "DirectOpened",
    "DiscoveryFailed",
    "EmbeddedIssuer",
    "ExternalIssuer",
    "KeyFile",
    "Message",
    "MessageAdded",
    "Misbehaved",
    "NotADestination",
    "PapaverError",
    "PersonalAgent",
    "Poppy",
    "PoppyError",
    "Refused",
    "Reply",
    "Scope",
    "ScopesNeeded",
    "SignInNeeded",
    "SignedInSession",
    "SqliteStore",
    "SqliteVault",
    "StateChanged",
    "Turn",
    "UserRequested",
    "VerifiedSession",
    "__version__",
]

__version__ = "0.1.0"

_ROOMS = {
    "adapters.fastapi": ("Poppy",),
    "adapters.httpx2": ("PersonalAgent",),
    "adapters.keyfile": ("KeyFile",),
    "company": ("Company", "EmbeddedIssuer", "ExternalIssuer", "Reply", "Scope", "ScopesNeeded", "Turn"),
    "protocol.conversation.model": (
        "Author",
        "AuthorizationNeeded",
        "DirectClosed",
        "DirectOpened",
        "Message",
        "MessageAdded",
        "StateChanged",
        "UserRequested",
    ),
    "protocol.errors": (
        "ConfigurationError",
        "DiscoveryFailed",
        "Misbehaved",
        "NotADestination",
        "PoppyError",
        "Refused",
        "SignInNeeded",
    ),
    "protocol.session": ("VerifiedSession",),
    "protocol.signed_in": ("SignedInSession",),
    "protocol.terms": ("AccountId",),
    "stores.sqlite": ("SqliteStore",),
    "stores.sqlite.vault": ("SqliteVault",),
    "values.errors": ("PapaverError",),
}
_FASTAPI = ("fastapi", "starlette")
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name from its room, once.

    Raises AttributeError for any other name, and ImportError for a room whose extra is not installed.
    """
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'papaver' has no attribute {name!r}")
    try:
        value: object = getattr(import_module(f"papaver.{room}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _FASTAPI:
            raise
        raise ImportError(
            f"papaver.{name} needs {error.name}: install papaver[fastapi]. An app of Starlette alone needs "
            "papaver[server] and papaver.adapters.starlette.Poppy",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
