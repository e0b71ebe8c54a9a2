"""What all Sessions of one Personal Agent share, and nothing that belongs to a User or a Company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from papaver.personal_agent.delegated import DelegatedKeys
from papaver.personal_agent.identity import Identity
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import Clock, Ids
from papaver.protocol.dialect import Dialect, Version

__all__ = ["Setup"]


@dataclass(frozen=True, slots=True)
class Setup:
    """`extensions` lists, for each extension that is implemented, its versions, the preferred one first (3.3).

    `dialects` are the protocol versions that are spoken; `in_flight` the ids of messages that are being sent now.
    """

    identity: Identity
    limits: AgentLimits
    clock: Clock
    ids: Ids
    keys: DelegatedKeys
    dialects: Mapping[Version, Dialect]
    extensions: Mapping[str, Sequence[str]]
    in_flight: set[str] = field(default_factory=set[str])
