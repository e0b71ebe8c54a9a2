"""The advisory lock: excludes, also within one process, and says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from papaver.stores import file_lock
from papaver.stores.faults import StoreUnusable
from papaver.stores.file_lock import FileLock, check_lockable


def test_two_locks_on_one_path_exclude_each_other(tmp_path: Path) -> None:
    """Until the first is given back or closed."""
    one, two = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with one.held():
        assert not two.try_take()
    assert two.try_take()
    assert not one.try_take()
    two.close()
    assert one.try_take()
    one.close()


def test_a_deleted_lock_file_is_noticed(tmp_path: Path) -> None:
    """Its last holder deleted it: whoever holds the old file excludes nobody."""
    path = tmp_path / "lock"
    one = FileLock(path)
    assert one.is_at_path()
    path.unlink()
    assert not one.is_at_path()
    two = FileLock(path)
    assert (one.is_at_path(), two.is_at_path()) == (False, True)
    one.close()
    two.close()


def test_a_lock_that_works_is_accepted(tmp_path: Path) -> None:
    """And left free."""
    check_lockable(tmp_path / "lock")
    check_lockable(tmp_path / "lock")


def test_a_lock_that_excludes_nobody_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems grant every lock."""

    def grant(_: FileLock) -> bool:
        return True

    monkeypatch.setattr(FileLock, "try_take", grant)
    with pytest.raises(StoreUnusable, match="exclude nobody"):
        check_lockable(tmp_path / "lock")


def test_a_disk_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others know no locks at all."""

    def fail(*_: object, **__: object) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(file_lock, "_take", fail)
    with pytest.raises(StoreUnusable, match="do not work") as refused:
        check_lockable(tmp_path / "lock")
    assert "No locks" in refused.value.detail
