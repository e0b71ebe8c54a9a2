"""Digests and numbers that stand for long keys in the columns of both databases."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

__all__ = ["digest", "number"]


def digest(*parts: str) -> bytes:
    """16 bytes that stand for these strings; some 2**64 rows before two of them may meet."""
    framed = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(4096)
def number(*parts: str) -> int:
    """The same as a number of 64 bits, for what need not be certain."""
    return int.from_bytes(digest(*parts)[:8], "big", signed=True)
