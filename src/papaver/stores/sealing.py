"""How a vault's rows are hidden: AES-256-GCM for values, keyed hashes for the names they are found by."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from papaver.stores.faults import StoreFailed

__all__ = ["KEY_BYTES", "Sealing"]

KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealing:
    """One vault's key at work. Its repr shows nothing."""

    __slots__ = ("_cipher", "_naming")

    def __init__(self, key: bytes) -> None:
        """`key` is 32 random bytes; each of the two uses gets its own key, derived from it."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a vault's key has {KEY_BYTES} bytes, not {len(key)}")
        self._cipher = AESGCM(_derive(key, b"papaver vault values"))
        self._naming = _derive(key, b"papaver vault names")

    def __reduce__(self) -> str:
        raise TypeError("a vault's key is not pickled")

    def name(self, *parts: str) -> bytes:
        """What a row is found by: 32 bytes that tell nothing of `parts` to whoever has no key."""
        framed = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts)
        return hmac.new(self._naming, framed, sha256).digest()

    def seal(self, place: bytes, key: str, value: bytes) -> bytes:
        """Encrypt both. A sealed row opens at its own `place` only, so that rows cannot be exchanged."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        own = key.encode()
        return nonce + self._cipher.encrypt(nonce, len(own).to_bytes(4) + own + value, place)

    def unseal(self, place: bytes, sealed: bytes) -> tuple[str, bytes]:
        """(key, value). Raises StoreFailed for a row that another key made, or that was changed on the disk."""
        try:
            plain = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError) as fault:
            raise StoreFailed("a row of the vault does not open: it was changed, or made with another key") from fault
        end = 4 + int.from_bytes(plain[:4])
        return plain[4:end].decode(), plain[end:]


def _derive(key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=purpose).derive(key)
