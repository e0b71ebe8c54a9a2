"""Both vaults pass the one contract; the one in SQLite hides what it holds and says where its key is."""

from __future__ import annotations

import pickle
import sqlite3
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from papaver.stores.faults import StoreFailed, StoreUnusable, VaultKeyWrong
from papaver.stores.memory_vault import MemoryVault
from papaver.stores.sealing import Sealing
from papaver.stores.sqlite import SqliteVault
from papaver.testing.vaults import SHARED_VAULT_CONTRACT, VAULT_CONTRACT, VaultCase, opened_vault

pytestmark = pytest.mark.anyio
KEY = bytes(range(32))


def _name(case: VaultCase) -> str:
    return getattr(case, "__name__", "case")


@pytest.fixture(autouse=True)
def without_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the keyring of whoever runs it."""
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.mark.parametrize("case", VAULT_CONTRACT, ids=_name)
async def test_memory_vault(case: VaultCase) -> None:
    """The vault of the tests behaves as the real one does."""
    vault = MemoryVault()
    await case(lambda: vault)


@pytest.mark.parametrize("case", [*VAULT_CONTRACT, *SHARED_VAULT_CONTRACT], ids=_name)
async def test_sqlite_vault(case: VaultCase, tmp_path: Path) -> None:
    """A Personal Agent's vault keeps the contract."""
    await case(lambda: SqliteVault(tmp_path / "vault.db"))


async def test_nothing_of_a_row_can_be_read_on_the_disk(tmp_path: Path) -> None:
    """Neither kind, key nor value is in any file beside the vault, nor in its repr."""
    vault = SqliteVault(tmp_path / "vault.db")
    await vault.open()
    await vault.change("canary-kind", "canary-key", lambda _: b"canary-value")
    async with vault.exclusive("canary-name"):
        on_disk = _everything(tmp_path)
    await vault.close()
    assert b"canary" not in on_disk + _everything(tmp_path)
    assert "canary" not in repr(vault)


def _everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() + path.name.encode() for path in folder.rglob("*") if path.is_file())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
async def test_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    """0600 for files, 0700 for the folders that we make, also when the file was there with wider permissions."""
    home = tmp_path / "home"
    async with opened_vault(lambda: SqliteVault(home / "vault.db")) as vault:
        await vault.change("session", "a", lambda _: b"1")
        assert _modes(home) == {0o600, 0o700}
    (home / "vault.db").chmod(0o644)
    async with opened_vault(lambda: SqliteVault(home / "vault.db")):
        assert _modes(home) == {0o600, 0o700}


def _modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


async def test_a_wrong_key_is_said_clearly(tmp_path: Path) -> None:
    """Another key than the vault was made with opens nothing and changes nothing."""
    path = tmp_path / "vault.db"
    async with opened_vault(lambda: SqliteVault(path, KEY)) as vault:
        assert vault.guarded_by == "the caller"
        await vault.change("session", "a", lambda _: b"1")
    with pytest.raises(VaultKeyWrong, match="does not open"):
        await SqliteVault(path, bytes(32)).open()
    with pytest.raises(VaultKeyWrong, match="pass it"):
        await SqliteVault(path).open()
    async with opened_vault(lambda: SqliteVault(path, KEY)) as vault:
        assert await vault.load("session", "a") == b"1"


def test_a_key_has_its_length() -> None:
    """A password is no key."""
    with pytest.raises(ValueError):
        SqliteVault("vault.db", b"password")


async def test_a_lost_key_file_is_not_replaced(tmp_path: Path) -> None:
    """A vault without its key says so; a fresh key would hide that everything is lost."""
    path, key = tmp_path / "vault.db", tmp_path / "vault.db.key"
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        assert vault.guarded_by == str(key)
    kept = key.read_text()
    key.unlink()
    with pytest.raises(VaultKeyWrong, match="cannot be read"):
        await SqliteVault(path).open()
    key.touch(0o600)
    key.write_text("not base64!\n")
    with pytest.raises(VaultKeyWrong, match="no vault's key"):
        await SqliteVault(path).open()
    key.write_text(kept)
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        assert vault.guarded_by == str(key)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
async def test_a_key_file_that_others_may_read_opens_no_vault(tmp_path: Path, mode: int) -> None:
    """It is refused with the remedy, and left as it is; who follows the remedy has the vault back."""
    path, key = tmp_path / "vault.db", tmp_path / "vault.db.key"
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        await vault.change("session", "a", lambda _: b"1")
    key.chmod(mode)
    with pytest.raises(StoreUnusable, match=f"chmod 600 {key}") as caught:
        await SqliteVault(path).open()
    assert caught.value.rule == "vault.key-private"
    assert key.stat().st_mode & 0o777 == mode
    key.chmod(0o600)
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        assert await vault.load("session", "a") == b"1"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such links for everybody")
@pytest.mark.parametrize("name", ["vault.db", "vault.db-locks", "vault.db.key"])
@pytest.mark.parametrize("dangling", [True, False])
async def test_a_vault_is_not_written_through_a_planted_link(tmp_path: Path, name: str, dangling: bool) -> None:
    """Whoever laid a symbolic link in the place of a new file does not choose where it is written."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir(mode=0o700)
    if not dangling:
        elsewhere.mkdir(mode=0o755) if name.endswith("locks") else elsewhere.write_bytes(b"")
    (home / name).symlink_to(elsewhere)
    with pytest.raises(StoreUnusable):
        await SqliteVault(home / "vault.db").open()
    assert elsewhere.exists() is not dangling
    assert dangling or elsewhere.is_dir() or elsewhere.read_bytes() == b""


@pytest.mark.parametrize("priority", [5, 0])
async def test_the_key_is_kept_by_a_keyring_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, priority: float
) -> None:
    """The platform's keyring is used when there is one; a backend of no priority is none."""
    kept = _install_keyring(monkeypatch, priority)
    path = tmp_path / "vault.db"
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        await vault.change("session", "a", lambda _: b"1")
        assert (vault.guarded_by == "keyring", len(kept)) == ((True, 1) if priority else (False, 0))
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        assert await vault.load("session", "a") == b"1"


async def test_a_keyring_that_lost_the_key_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the keyring itself is gone, as in a cron job."""
    kept = _install_keyring(monkeypatch, 5)
    async with opened_vault(lambda: SqliteVault(tmp_path / "vault.db")):
        pass
    kept.clear()
    with pytest.raises(VaultKeyWrong, match="keyring"):
        await SqliteVault(tmp_path / "vault.db").open()
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(VaultKeyWrong, match="keyring"):
        await SqliteVault(tmp_path / "vault.db").open()


async def test_a_locked_keyring_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyring that refuses the key leaves it to the file; one that refuses to give it back is said clearly."""
    kept = _install_keyring(monkeypatch, 5, locked=True)
    async with opened_vault(lambda: SqliteVault(tmp_path / "one.db")) as vault:
        assert vault.guarded_by == str(tmp_path / "one.db.key")
    assert not kept
    _install_keyring(monkeypatch, 5)
    async with opened_vault(lambda: SqliteVault(tmp_path / "two.db")) as vault:
        assert vault.guarded_by == "keyring"
    _install_keyring(monkeypatch, 5, locked=True)
    with pytest.raises(VaultKeyWrong, match="keyring"):
        await SqliteVault(tmp_path / "two.db").open()


def _install_keyring(
    monkeypatch: pytest.MonkeyPatch, priority: float, *, locked: bool = False
) -> dict[tuple[str, str], str]:
    """A keyring package with one backend; what it keeps."""
    kept: dict[tuple[str, str], str] = {}

    class KeyringError(Exception):
        pass

    class Backend:
        def set_password(self, service: str, username: str, password: str) -> None:
            if locked:
                raise KeyringError("locked")
            kept[service, username] = password

        def get_password(self, service: str, username: str) -> str | None:
            if locked:
                raise KeyringError("locked")
            return kept.get((service, username))

    backend = Backend()
    backend.__dict__["priority"] = priority
    package, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    package.__dict__.update(vars(SimpleNamespace(get_keyring=lambda: backend, errors=errors)))
    errors.__dict__["KeyringError"] = KeyringError
    monkeypatch.setitem(sys.modules, "keyring", package)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return kept


async def test_rows_cannot_be_exchanged_or_changed_on_the_disk(tmp_path: Path) -> None:
    """A value that was moved to another row does not open there."""
    path = tmp_path / "vault.db"
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        await vault.change("session", "a", lambda _: b"1")
        await vault.change("session", "b", lambda _: b"2")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sealed SET value = (SELECT value FROM sealed WHERE n = 2) WHERE n = 1")
    connection.close()
    async with opened_vault(lambda: SqliteVault(path)) as vault:
        with pytest.raises(StoreFailed):
            await vault.load("session", "a")
        with pytest.raises(StoreFailed):
            await vault.change("session", "a", lambda value: value)
        assert await vault.load("session", "b") == b"2"


@pytest.mark.parametrize("secretive", [Sealing(KEY), MemoryVault(), SqliteVault("vault.db", KEY)])
def test_a_vault_is_never_pickled(secretive: object) -> None:
    """Nor is its key shown."""
    with pytest.raises(TypeError):
        pickle.dumps(secretive)
    assert KEY.hex() not in repr(secretive)


async def test_a_vault_is_opened_once(tmp_path: Path) -> None:
    """A second `open` is a mistake that harms nothing."""
    async with opened_vault(lambda: SqliteVault(tmp_path / "vault.db")) as vault:
        with pytest.raises(StoreFailed, check=lambda fault: "open already" in fault.detail):
            await vault.open()
        assert await vault.rows("session") == ()
