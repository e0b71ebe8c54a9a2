"""A vault's key where an operator puts it: given, in the environment, in a file, in the keyring; shown nowhere."""

from __future__ import annotations

import base64
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from papaver.stores.faults import StoreUnusable, VaultKeyWrong
from papaver.stores.vault_key import VaultKey
from papaver.values.secret import SecretBytes

KEY = bytes(range(200, 232))
TEXT = base64.urlsafe_b64encode(KEY).decode()


@pytest.mark.parametrize("key", [VaultKey(KEY), VaultKey(SecretBytes(KEY))])
def test_a_given_key_is_the_callers(key: VaultKey) -> None:
    """A new vault and one that is there get the same."""
    assert (key.make("v"), key.load("v"), key.guarded_by) == (KEY, KEY, "the caller")
    assert repr(key) == "<VaultKey of the caller>"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_password_is_no_key() -> None:
    """A key has 32 random bytes."""
    with pytest.raises(ValueError):
        VaultKey(b"password")


def test_a_key_in_the_environment_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever forgot to set it is told how to make one; what is no key is said, and not shown."""
    key = VaultKey.from_environment("MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(VaultKeyWrong, match="MY_KEY should have the vault's key and is not set"):
        key.make("v")
    monkeypatch.setenv("MY_KEY", "canary")
    with pytest.raises(VaultKeyWrong, match="environment variable MY_KEY is no vault's key") as caught:
        key.load("v")
    assert "canary" not in str(caught.value)
    monkeypatch.setenv("MY_KEY", f"{TEXT}\n")
    assert (key.make("v"), key.load("v")) == (KEY, KEY)
    assert key.guarded_by == "the environment variable MY_KEY"
    assert VaultKey.from_environment().guarded_by == "the environment variable PAPAVER_VAULT_KEY"


def test_a_key_in_a_file_is_made_for_a_new_vault_alone(tmp_path: Path) -> None:
    """A file that is there is used; one that is lost is not replaced."""
    path = tmp_path / "vault.key"
    key = VaultKey.from_file(path)
    with pytest.raises(VaultKeyWrong, match=r"vault\.key, which cannot be read"):
        key.load("v")
    made = key.make("v")
    assert (len(made), key.load("v"), key.make("other"), key.guarded_by) == (32, made, made, str(path))
    assert sys.platform == "win32" or path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreUnusable, match="cannot be written"):
        VaultKey.from_file(tmp_path / "nowhere" / "vault.key").make("v")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
def test_a_file_that_others_may_read_is_no_place_for_a_key(tmp_path: Path) -> None:
    """Refused with the remedy, also for a new vault."""
    path = tmp_path / "vault.key"
    path.write_text(TEXT)
    path.chmod(0o644)
    for read in (VaultKey.from_file(path).make, VaultKey.from_file(path).load):
        with pytest.raises(StoreUnusable, match="chmod 600") as caught:
            read("v")
        assert caught.value.rule == "vault.key-private"


def test_a_key_in_the_keyring_is_made_for_a_new_vault_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vault has its own; without a keyring that works there is none."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    key = VaultKey.from_keyring()
    with pytest.raises(StoreUnusable, match=r"VaultKey\.from_file"):
        key.make("v")
    kept: dict[tuple[str, str], str] = {}

    class Backend:
        priority = 5

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

    package, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    package.__dict__.update(get_keyring=Backend)
    errors.__dict__["KeyringError"] = OSError
    monkeypatch.setitem(sys.modules, "keyring", package)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    made = key.make("v")
    assert (key.load("v"), key.guarded_by, len(kept)) == (made, "keyring", 1)
    with pytest.raises(VaultKeyWrong, match="keyring"):
        key.load("other")
