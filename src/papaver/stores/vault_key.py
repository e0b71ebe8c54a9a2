"""Where a vault's key is kept: in the platform's keyring, in a 0600 file, in the environment, or with the caller."""

from __future__ import annotations

import base64
import importlib
import os
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from papaver.stores.faults import StoreUnusable, VaultKeyWrong
from papaver.stores.sealing import KEY_BYTES
from papaver.values.secret import SecretBytes

__all__ = ["GIVEN", "KEYRING", "VaultKey", "load_key", "make_key"]

GIVEN = "the caller"

KEYRING = "keyring"
MAX_CHARACTERS = 4_096
"""Far more than a key's file has."""
_SERVICE = "papaver vault"
_WORKS_FROM = 1
"""The priority from which a backend calls itself recommended; below are the null and the failing ones."""


def make_key(vault_id: str, path: Path) -> tuple[bytes, str]:
    """A new key, kept; and where: `keyring` or the path of the file. `path` is where the file would be."""
    key = secrets.token_bytes(KEY_BYTES)
    if _keep_in_keyring(vault_id, key):
        return key, KEYRING
    _keep_in_file(path, key)
    return key, str(path)


def _keep_in_file(path: Path, key: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_write(key).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
    except OSError as fault:
        raise StoreUnusable(f"the vault's key cannot be written to {path}: {fault.strerror}") from fault


class VaultKey:
    """Where the key is of a vault that processes on several hosts open: all of them need the same one.

    `VaultKey(key)` is 32 random bytes that the caller keeps. Nothing is read or made before the vault is opened.
    """

    __slots__ = ("_load", "_make", "guarded_by")

    def __init__(self, key: bytes | SecretBytes) -> None:
        given = key if isinstance(key, SecretBytes) else SecretBytes(key)
        if len(given.reveal()) != KEY_BYTES:
            raise ValueError(f"a vault's key has {KEY_BYTES} bytes, not {len(given.reveal())}")
        self._set(GIVEN, lambda _: given.reveal())

    @classmethod
    def from_environment(cls, variable: str = "PAPAVER_VAULT_KEY") -> VaultKey:
        """32 random bytes, written in base64url, in an environment variable: the way to share a key among hosts."""
        return cls._of(f"the environment variable {variable}", lambda _: _from_environment(variable))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> VaultKey:
        """The same in a file that its owner alone can read. It is made for a new vault if it is not there."""
        file = Path(path)
        where = str(file)

        def make(vault_id: str) -> bytes:
            if not file.exists():
                _keep_in_file(file, secrets.token_bytes(KEY_BYTES))
            return load_key(vault_id, file, where)

        return cls._of(where, lambda vault_id: load_key(vault_id, file, where), make)

    @classmethod
    def from_keyring(cls) -> VaultKey:
        """In the platform's keyring, where a new vault's key is put: for processes of one user on one host."""

        def make(vault_id: str) -> bytes:
            key = secrets.token_bytes(KEY_BYTES)
            if not _keep_in_keyring(vault_id, key):
                raise StoreUnusable("the platform has no keyring that works; use VaultKey.from_file")
            return key

        return cls._of(KEYRING, lambda vault_id: load_key(vault_id, Path(), KEYRING), make)

    @classmethod
    def _of(cls, where: str, load: Callable[[str], bytes], make: Callable[[str], bytes] | None = None) -> VaultKey:
        key = cls.__new__(cls)
        key._set(where, load, make)
        return key

    def _set(self, where: str, load: Callable[[str], bytes], make: Callable[[str], bytes] | None = None) -> None:
        self.guarded_by = where
        self._load, self._make = load, make or load

    def __reduce__(self) -> str:
        raise TypeError("a vault's key is not pickled")

    def __repr__(self) -> str:
        return f"<VaultKey of {self.guarded_by}>"

    def load(self, vault_id: str) -> bytes:
        """The key of a vault that is there. Raises VaultKeyWrong, or StoreUnusable when others can read its file."""
        return self._load(vault_id)

    def make(self, vault_id: str) -> bytes:
        """The key of a new vault: the one that is there, or a new one that is kept. Raises as `load`."""
        return self._make(vault_id)


def _from_environment(variable: str) -> bytes:
    text = os.environ.get(variable)
    if not text:
        raise VaultKeyWrong(
            f"the environment variable {variable} should have the vault's key and is not set; a new vault takes "
            f"{KEY_BYTES} random bytes in base64url: openssl rand -base64 {KEY_BYTES} | tr +/ -_"
        )
    return _read(text, f"the environment variable {variable}")


def load_key(vault_id: str, path: Path, guard: str) -> bytes:
    """The key of an existing vault, from where it was put.

    Raises VaultKeyWrong when it is not there, StoreUnusable when others can read its file.
    """
    if guard == KEYRING:
        text = _from_keyring(vault_id)
        if text is None:
            raise VaultKeyWrong("the vault's key is in the platform's keyring, which does not hand it out here")
        return _read(text, KEYRING)
    try:
        with open(path, encoding="ascii") as file:
            check_key_private(path, os.fstat(file.fileno()).st_mode)
            text = file.read(MAX_CHARACTERS)
    except (OSError, ValueError) as fault:
        raise VaultKeyWrong(f"the vault's key should be in {path}, which cannot be read", detail=str(fault)) from fault
    return _read(text, str(path))


def check_key_private(path: Path, mode: int) -> None:
    """Nobody but the owner can read or write the file that was opened; Windows keeps its rights elsewhere.

    Raises StoreUnusable. (The file of identity keys is held to the same, as `keyfile.private`.)
    """
    if sys.platform != "win32" and stat.S_IMODE(mode) & 0o077:
        raise StoreUnusable(
            f"{path}, the vault's key, can be read by others than its owner (mode {stat.S_IMODE(mode):04o}). If nobody "
            f"has read it, run: chmod 600 {path}",
            rule="vault.key-private",
        )


def _write(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


def _read(text: str, where: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text.strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise VaultKeyWrong(f"what is in {where} is no vault's key")
    return key


class _Keyring(Protocol):
    """What we use of a backend of the optional package `keyring`."""

    @property
    def priority(self) -> float: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def get_password(self, service: str, username: str) -> str | None: ...


def _keyring() -> _Keyring | None:
    """The platform's keyring; None without the package or without one that calls itself recommended."""
    try:
        backend: _Keyring = importlib.import_module("keyring").get_keyring()
        return backend if backend.priority >= _WORKS_FROM else None
    except (ImportError, RuntimeError):
        return None


def _keep_in_keyring(vault_id: str, key: bytes) -> bool:
    """Whether the platform has a keyring that gives back what it was given."""
    backend = _keyring()
    if backend is None:
        return False
    try:
        backend.set_password(_SERVICE, vault_id, _write(key))
        return backend.get_password(_SERVICE, vault_id) == _write(key)
    except _faults():
        return False


def _from_keyring(vault_id: str) -> str | None:
    backend = _keyring()
    if backend is None:
        return None
    try:
        return backend.get_password(_SERVICE, vault_id)
    except _faults():
        return None


def _faults() -> tuple[type[Exception], ...]:
    """What a backend may raise: a locked keyring, a bus that is gone."""
    own: type[Exception] = importlib.import_module("keyring.errors").KeyringError
    return own, RuntimeError, OSError
