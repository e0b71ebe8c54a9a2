"""The folder of a Personal Agent."""

from __future__ import annotations

import stat
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
