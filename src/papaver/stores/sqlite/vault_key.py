"""Where a vault's key is kept: in the platform's keyring when one works, otherwise in a 0600 file beside the vault."""

from __future__ import annotations

import base64
import importlib
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import Protocol

from papaver.stores.faults import StoreUnusable, VaultKeyWrong
from papaver.stores.sqlite.sealing import KEY_BYTES

__all__ = ["KEYRING", "load_key", "make_key"]

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
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_write(key).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
    except OSError as fault:
        raise StoreUnusable(f"the vault's key cannot be written to {path}: {fault.strerror}") from fault
    return key, str(path)


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
