"""The folder of a Personal Agent."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from papaver.cli.home import Home, Profile, home_folder, write_private
from papaver.protocol.errors import ConfigurationError
from papaver.values.errors import PapaverError

ME = "https://agent.example/agent.json"


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def test_everything_in_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Folders 0700, files 0600, also those above it that are made."""
    home = Home(tmp_path / "a" / "b")
    home.begin(Profile(ME))
    modes = _modes(tmp_path)
    assert {name: mode for name, mode in modes.items() if mode not in (0o600, 0o700)} == {}
    assert modes["a"] == modes["b"] == modes["publish"] == 0o700
    assert modes["keys.json"] == modes["agent.json"] == 0o600


def test_what_is_to_be_published_is_written_by_url(tmp_path: Path) -> None:
    """The document at `client_id`, and the key set beside it."""
    written = Home(tmp_path).begin(Profile(ME, "Dana's agent", ("https://agent.example/callback",)))
    assert set(written) == {ME, "https://agent.example/jwks.json"}
    assert '"client_name": "Dana\'s agent"' in written[ME].read_text()
    assert '"d"' not in written["https://agent.example/jwks.json"].read_text()


def test_beginning_again_keeps_the_keys(tmp_path: Path) -> None:
    """A changed name is no reason for new keys."""
    home = Home(tmp_path)
    home.begin(Profile(ME))
    before = home.keys.current.kid
    home.begin(Profile(ME, "Other name"))
    assert home.keys.current.kid == before
    assert home.profile().name == "Other name"
    assert home.identity().name == "Other name"


def test_a_folder_has_one_identity(tmp_path: Path) -> None:
    """Another `client_id` gets a folder of its own; this one stays as it was."""
    home = Home(tmp_path)
    home.begin(Profile(ME))
    with pytest.raises(PapaverError) as caught:
        home.begin(Profile("https://other.example/agent.json"))
    assert caught.value.rule == "home.one-identity"
    assert home.profile().client_id == ME


def test_a_client_id_that_no_company_may_accept_makes_nothing(tmp_path: Path) -> None:
    """It is refused before anything is written."""
    with pytest.raises(ConfigurationError) as caught:
        Home(tmp_path / "home").begin(Profile("http://agent.example/agent.json"))
    assert caught.value.rule == "client.client-id-form"
    assert not (tmp_path / "home").exists()


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    """The next command to type is in the error."""
    with pytest.raises(PapaverError) as caught:
        Home(tmp_path).profile()
    assert caught.value.rule == "home.initialised"
    assert getattr(caught.value, "next", "").startswith("papaver init ")


def test_a_profile_that_is_none_is_told(tmp_path: Path) -> None:
    """The file is named."""
    (tmp_path / "agent.json").write_text('{"client_idd": 1}')
    with pytest.raises(ConfigurationError) as caught:
        Home(tmp_path).profile()
    assert caught.value.rule == "home.readable"
    assert str(tmp_path / "agent.json") in caught.value.description


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError) as caught:
        Home(tmp_path / "file").begin(Profile(ME))
    assert caught.value.rule in ("home.usable", "keyfile.readable")


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")


def _refused(folder: Path) -> PapaverError:
    """What each way into a home says, with its remedy."""
    with pytest.raises(PapaverError) as first:
        Home(folder).begin(Profile(ME))
    with pytest.raises(PapaverError) as second:
        Home(folder).profile()
    assert str(first.value) == str(second.value)
    assert getattr(first.value, "next", "")
    return first.value


@posix
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702, 0o777, 0o1777])
def test_a_home_that_others_may_write_to_gets_no_key(tmp_path: Path, mode: int) -> None:
    """They could lay a file in the place of ours; nothing is written, and the command to type is told."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    error = _refused(home)
    assert (error.rule, list(home.iterdir())) == ("home.ours", [])
    assert getattr(error, "next", "").endswith(f"chmod 700 {home}")
    assert f"{mode:04o}" in error.description
    home.chmod(0o700)
    Home(home).begin(Profile(ME))


@posix
def test_a_home_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, or in a folder that somebody lent: its owner can change what is in it."""
    mine = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    error = _refused(tmp_path)
    assert (error.rule, list(tmp_path.iterdir())) == ("home.ours", [])
    assert "another user" in error.description


@posix
@pytest.mark.parametrize(("mode", "good"), [(0o777, False), (0o1777, True), (0o775, True)])
def test_a_home_that_everybody_could_exchange_is_not_used(tmp_path: Path, mode: int, good: bool) -> None:
    """Who may rename in the folder above may put a home of their own there; in one like /tmp they may not."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    home = tmp_path / "open" / "home"
    home.mkdir(mode=0o700)
    if good:
        Home(home).begin(Profile(ME))
    else:
        assert _refused(home).rule == "home.ours"


@posix
def test_a_new_home_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    """A shell that gives everybody everything changes nothing."""
    before = os.umask(0)
    try:
        Home(tmp_path / "home").begin(Profile(ME))
    finally:
        os.umask(before)
    assert {mode for mode in _modes(tmp_path).values() if mode & 0o077} == set()


@posix
@pytest.mark.parametrize("name", ["agent.json", "agent.json.new", "publish/agent.json", "keys.json.new"])
def test_a_planted_link_is_replaced_and_never_written_through(tmp_path: Path, name: str) -> None:
    """What it leads to stays as it was."""
    other, home = tmp_path / "other", tmp_path / "home"
    Home(home).begin(Profile(ME))
    other.write_text(home.joinpath("agent.json").read_text())
    before = other.read_text()
    (home / name).unlink(missing_ok=True)
    (home / name).symlink_to(other)
    Home(home).begin(Profile(ME, "Other name"))
    Home(home).keys.add()
    assert other.read_text() == before
    assert not [path for path in home.rglob("*") if path.is_symlink()]


@posix
@pytest.mark.parametrize("name", ["agent.json.lock", "keys.json.lock"])
def test_a_lock_is_not_made_through_a_planted_link(tmp_path: Path, name: str) -> None:
    """It is told, and what it leads to is not made."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / name).symlink_to(tmp_path / "other")
    with pytest.raises(ConfigurationError):
        Home(home).begin(Profile(ME))
    assert not (tmp_path / "other").exists()


@posix
def test_a_home_that_cannot_be_seen_is_told(tmp_path: Path) -> None:
    """As a setting that is wrong, never as a traceback."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert not Home(tmp_path / "none").is_begun
    with pytest.raises(ConfigurationError) as caught:
        _ = Home(tmp_path / "loop").is_begun
    assert caught.value.rule == "home.usable"


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A draft that a crash left behind is no obstacle, and none stays."""
    path = tmp_path / "x"
    path.with_name("x.new").write_text("half")
    write_private(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its name."""
    with pytest.raises(ConfigurationError) as caught:
        write_private(tmp_path / "no" / "x", b"")
    assert caught.value.rule == "home.usable"


@pytest.mark.parametrize(
    ("platform", "environ", "tail"),
    [
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/papaver"),
        ("linux", {}, ".local/share/papaver"),
        ("darwin", {}, "Library/Application Support/papaver"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/papaver"),
    ],
)
def test_the_folder_is_the_platform_s(platform: str, environ: dict[str, str], tail: str) -> None:
    """Where each platform keeps a program's data."""
    assert home_folder(environ, platform).as_posix().endswith(tail)
