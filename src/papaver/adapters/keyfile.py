"""Private keys in one file that only its owner can read, written atomically, changed by one process at a time."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Never, cast

from papaver.jose.keys import Alg, KeyRefused, PrivateKey, PublicKey
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, dumps, loads_object

__all__ = ["KeyFile"]

logger = logging.getLogger("papaver.keys")

MAX_BYTES: Final = 1024 * 1024


class KeyFile:
    """The private keys of one Personal Agent, or of one issuer, newest first. Opening it does nothing yet.

    The first use makes the file (0600, a new folder 0700) with one key of `alg`, and warns that it did: a Personal
    Agent that has a key elsewhere is somebody else with this one. The file is a JSON object whose
    `keys` are private JWKs. Neither its repr nor a pickle shows a key.
    """

    __slots__ = ("_alg", "_keys", "path")

    def __init__(self, path: str | os.PathLike[str], *, alg: Alg = "ES256") -> None:
        self.path = Path(path)
        self._alg: Alg = alg
        self._keys: tuple[PrivateKey, ...] = ()

    @property
    def current(self) -> PrivateKey:
        """The key to sign with. Raises ConfigurationError."""
        return self.keys[0]

    @property
    def keys(self) -> tuple[PrivateKey, ...]:
        """Every key, the newest first; at least one. Read once, until `reload`. Raises ConfigurationError."""
        if not self._keys:
            self._keys = self._read()
        if not self._keys:
            with self._locked():
                self._keys = self._read() or self._begin()
        return self._keys

    @property
    def public_keys(self) -> tuple[PublicKey, ...]:
        """What the key-set document publishes, the newest first. Raises ConfigurationError."""
        return tuple(key.public for key in self.keys)

    def add(self, alg: Alg | None = None) -> PrivateKey:
        """A new key in front of the others, which stay published until they are removed. Raises ConfigurationError."""
        added = PrivateKey.generate(alg or self._alg)
        with self._locked():
            self._keys = self._write((added, *self._read()))
        return added

    def remove(self, kid: str) -> None:
        """Forget a key; what it signed stops verifying when the caches of the key set run out (10.7).

        Raises ConfigurationError for an unknown key and for the last one.
        """
        with self._locked():
            found = self._read()
            kept = tuple(key for key in found if key.kid != kid)
            if len(kept) == len(found) or not kept:
                raise ConfigurationError(f"{self.path} has no other key than {kid!r}, or not this one")
            self._keys = self._write(kept)

    def reload(self) -> None:
        """Read the file again at the next use, for a key that another process added."""
        self._keys = ()

    def __repr__(self) -> str:
        return f"KeyFile({str(self.path)!r})"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a KeyFile is never pickled")

    def _read(self) -> tuple[PrivateKey, ...]:
        """The keys of the file; none when there is no file."""
        try:
            with open(self.path, "rb") as file:
                check_private(self.path, os.fstat(file.fileno()).st_mode)
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unusable(self.path, error) from error
        try:
            entries = loads_object(data, max_bytes=MAX_BYTES).get("keys")
            if not isinstance(entries, list) or not entries:
                raise JsonError("there is no list of keys")
            return tuple(PrivateKey.read(entry) for entry in cast("list[object]", entries))
        except (JsonError, KeyRefused) as error:
            raise ConfigurationError(
                f"{self.path} is no key file: {error.description}. Restore it, or move it away to begin with a new key",
                rule="keyfile.readable",
            ) from None

    def _begin(self) -> tuple[PrivateKey, ...]:
        """The first key. Nobody knows it yet, so what it signs is believed only once it is published."""
        logger.warning("%s was not there: it has a new key now, to be published", self.path.absolute())
        return self._write((PrivateKey.generate(self._alg),))

    def _write(self, keys: tuple[PrivateKey, ...]) -> tuple[PrivateKey, ...]:
        """Put a new file in place of the old one, on the disk before its name is. The caller holds the lock."""
        draft = self.path.with_name(self.path.name + ".new")
        try:
            draft.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with open(os.open(draft, flags, 0o600), "wb") as file:
                file.write(dumps({"keys": [key.private_jwk() for key in keys]}))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
            if sys.platform != "win32":
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise _unusable(self.path, error) from error
        return keys

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        """Only one process reads or writes the file at a time, so two that start at once make one key."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            lock = os.open(self.path.with_name(self.path.name + ".lock"), flags, 0o600)
        except OSError as error:
            raise _unusable(self.path, error) from error
        try:
            _lock(lock)
            yield
        finally:
            os.close(lock)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@rule("keyfile.private")
def check_private(path: Path, mode: int) -> None:
    """Nobody but the owner can read or write the file; Windows keeps its rights elsewhere.

    Raises ConfigurationError.
    """
    if sys.platform != "win32" and stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(
            f"{path} can be read by others than its owner (mode {stat.S_IMODE(mode):04o}). If its keys are still "
            f"secret, run: chmod 600 {path}",
            rule="keyfile.private",
        )


def _unusable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{path} cannot be used: {error.strerror}", rule="keyfile.readable", detail=str(error))
