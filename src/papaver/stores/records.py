"""Events as they are stored, each decoded when it is looked at: a turn that needs two of four hundred decodes two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from papaver.protocol.conversation import record
from papaver.protocol.conversation.model import Event

__all__ = ["Records"]


class Records(Sequence[Event]):
    """Some events in their order. Looking at one raises RecordError when it cannot be read."""

    __slots__ = ("_bodies",)

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self._bodies = bodies

    def __len__(self) -> int:
        return len(self._bodies)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return Records(self._bodies[index])
        return record.read(self._bodies[index])
