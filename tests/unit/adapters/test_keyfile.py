"""The key file: private, atomic, one writer at a time, and silent about what it holds."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from papaver.adapters.keyfile import KeyFile
from papaver.protocol.errors import ConfigurationError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def first_kid(path: str) -> str:
    return KeyFile(path).current.kid


def test_nothing_happens_before_the_first_use(tmp_path: Path) -> None:
    """Opening a key file touches no disk."""
    KeyFile(tmp_path / "home" / "keys.json")
    assert list(tmp_path.iterdir()) == []


def test_the_first_use_makes_a_key_that_stays(tmp_path: Path) -> None:
    """In a 0700 folder, in a 0600 file; the next process finds the same ES256 key."""
    path = tmp_path / "home" / "keys.json"
    key = KeyFile(path).current
    assert (key.alg, mode(path), mode(path.parent)) == ("ES256", 0o600, 0o700)
    assert [found.kid for found in KeyFile(str(path)).keys] == [key.kid]
    assert sorted(each.name for each in path.parent.iterdir()) == ["keys.json", "keys.json.lock"]
    key.public.verify(KeyFile(path).current.sign(b"message"), b"message")


def test_a_new_key_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once: a program that looks for its keys in the wrong folder would be somebody else."""
    path = tmp_path / "keys.json"
    assert KeyFile(path).current
    assert caplog.messages == [f"{path} was not there: it has a new key now, to be published"]
    caplog.clear()
    assert KeyFile(path).current
    assert caplog.messages == []


def test_a_file_of_another_algorithm(tmp_path: Path) -> None:
    """PS384 where it is asked for, beside ES256."""
    file = KeyFile(tmp_path / "keys.json", alg="PS384")
    assert file.current.alg == "PS384"
    assert file.add("ES256").alg == "ES256"
    assert [key.alg for key in KeyFile(file.path).keys] == ["ES256", "PS384"]


def test_keys_are_added_in_front_and_removed_by_name(tmp_path: Path) -> None:
    """A rotation: both are published until the old one goes."""
    file = KeyFile(tmp_path / "keys.json")
    old, other = file.current, KeyFile(file.path)
    assert other.current.kid == old.kid
    new = file.add()
    assert file.current is new
    assert [key.kid for key in file.public_keys] == [new.kid, old.kid]
    assert other.current.kid == old.kid
    other.reload()
    assert other.current.kid == new.kid
    file.remove(old.kid)
    assert [key.kid for key in KeyFile(file.path).keys] == [new.kid]
    for kid in (new.kid, "unknown"):
        with pytest.raises(ConfigurationError):
            file.remove(kid)
    assert KeyFile(file.path).current.kid == new.kid


@pytest.mark.requirement("papaver-14")
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o644, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, bits: int) -> None:
    """With the remedy, and without a change to the file."""
    path = tmp_path / "keys.json"
    kid = KeyFile(path).current.kid
    path.chmod(bits)
    for use in (lambda: KeyFile(path).current, lambda: KeyFile(path).add()):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert caught.value.rule == "keyfile.private"
        assert f"chmod 600 {path}" in str(caught.value)
    path.chmod(0o600)
    assert [key.kid for key in KeyFile(path).keys] == [kid]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys":[]}', '{"keys":[{"kty":"EC","d":"planted"}]}', "\0"])
def test_a_file_that_is_damaged_is_kept_and_named(tmp_path: Path, content: str) -> None:
    """No new key takes the place of one that might be restored, and the error shows nothing of the content."""
    path = tmp_path / "keys.json"
    path.touch(0o600)
    path.write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        _ = KeyFile(path).current
    assert caught.value.rule == "keyfile.readable"
    assert "planted" not in f"{caught.value} {caught.value.detail}"
    assert path.read_text() == content


def test_a_private_part_that_is_wrong_is_not_shown(tmp_path: Path) -> None:
    """A key whose secret does not fit its public part."""
    path = tmp_path / "keys.json"
    _ = KeyFile(path).current
    document = json.loads(path.read_bytes())
    document["keys"][0]["x"] = document["keys"][0]["d"]
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError) as caught:
        _ = KeyFile(path).current
    assert document["keys"][0]["d"] not in f"{caught.value!r} {caught.value} {caught.value.detail}"


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A folder in place of the file, and a file in place of the folder."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "file" / "keys.json"):
        for use in (lambda path=path: KeyFile(path).current, lambda path=path: KeyFile(path).add()):
            with pytest.raises(ConfigurationError) as caught:
                use()
            assert caught.value.rule == "keyfile.readable"


def test_a_file_in_a_folder_that_is_read_only_can_be_read(tmp_path: Path) -> None:
    """Reading takes no lock, because a file is only ever replaced as a whole."""
    path = tmp_path / "keys.json"
    kid = KeyFile(path).current.kid
    path.with_name("keys.json.lock").unlink()
    assert KeyFile(path).current.kid == kid
    assert [each.name for each in tmp_path.iterdir()] == ["keys.json"]


def test_a_draft_that_a_crash_left_behind_is_replaced(tmp_path: Path) -> None:
    """Only the rename makes a key exist."""
    path = tmp_path / "keys.json"
    path.with_name("keys.json.new").write_text("half a")
    kid = KeyFile(path).current.kid
    assert KeyFile(path).current.kid == kid
    assert not path.with_name("keys.json.new").exists()


def test_no_key_is_shown(tmp_path: Path) -> None:
    """Not by repr, not by a pickle."""
    file = KeyFile(tmp_path / "keys.json")
    secret = file.current.private_jwk()["d"]
    assert repr(file) == f"KeyFile({str(file.path)!r})"
    assert secret not in f"{file!r} {file.keys!r} {file.public_keys!r}"
    with pytest.raises(TypeError):
        pickle.dumps(file)


def test_processes_that_start_at_once_make_one_key(tmp_path: Path) -> None:
    """The lock lets one of them write and the others read."""
    path = str(tmp_path / "keys.json")
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert len(set(pool.map(first_kid, [path] * 8))) == 1


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is an error with a name, and the key is still there."""
    file = KeyFile(tmp_path / "keys.json")
    kid = file.current.kid

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError) as caught:
        file.add()
    assert "No space left" in str(caught.value)
    assert not file.path.with_name("keys.json.new").exists()
    assert [key.kid for key in KeyFile(file.path).keys] == [kid]
