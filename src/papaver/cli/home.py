"""The folder of a Personal Agent on this machine: who it is, its keys, its vault, and the documents it publishes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from papaver.adapters.keyfile import KeyFile
from papaver.cli.failures import CliError
from papaver.personal_agent.identity import Identity
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from papaver.stores.file_lock import FileLock
from papaver.web.urls import read_url

__all__ = ["Home", "Profile", "home_folder", "write_private"]

PROFILE: Final = "agent.json"


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who the Personal Agent is. It holds no secret."""

    client_id: str
    name: str | None = None
    redirect_uris: tuple[str, ...] = ()


def home_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where the platform keeps a program's data for this user."""
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "papaver"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "papaver"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "papaver"


@dataclass(frozen=True, slots=True)
class Home:
    """Folders are 0700, files 0600; each file is written whole, and by one process at a time."""

    folder: Path

    @property
    def keys(self) -> KeyFile:
        """The identity keys; made when they are first used."""
        return KeyFile(self.folder / "keys.json")

    @property
    def vault(self) -> Path:
        """The file of the vault."""
        return self.folder / "agent.db"

    @property
    def is_begun(self) -> bool:
        """Whether somebody said who the Personal Agent is. Raises ConfigurationError when that cannot be seen."""
        try:
            (self.folder / PROFILE).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _unusable(self.folder, error) from error
        return True

    def profile(self) -> Profile:
        """Who the Personal Agent is. Raises ConfigurationError when nobody said so yet, or others may change it."""
        path = self.folder / PROFILE
        check_folder_ours(self.folder)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Profile)
        except FileNotFoundError:
            raise CliError(
                f"{self.folder} has no Personal Agent yet",
                code="configuration",
                rule="home.initialised",
                next="papaver init https://agent.example/agent.json",
            ) from None
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigurationError(f"{path} cannot be read", rule="home.readable", detail=str(error)) from None

    def identity(self) -> Identity:
        """Its `client_id`, keys and documents. Raises ConfigurationError."""
        return _identity(self.profile(), self.keys)

    def begin(self, profile: Profile) -> Mapping[str, Path]:
        """Make the keys when there are none, write who it is and what it has to publish: URL → file.

        Raises ConfigurationError, also when this folder belongs to another `client_id`; then nothing is written.
        """
        identity = _identity(profile, self.keys)
        publish = self.folder / "publish"
        try:
            private_folder(self.folder)
            check_folder_ours(self.folder)
            private_folder(publish)
            lock = FileLock(self.folder / f"{PROFILE}.lock")
        except OSError as error:
            raise _unusable(self.folder, error) from error
        try:
            with lock.held():
                self._check_same_identity(profile.client_id)
                written: dict[str, Path] = {}
                for url, body in identity.documents().items():
                    written[url] = publish / Path(read_url(url).path).name
                    write_private(written[url], msgspec.json.format(body) + b"\n")
                write_private(self.folder / PROFILE, msgspec.json.format(msgspec.json.encode(profile)) + b"\n")
                return written
        finally:
            lock.close()

    def _check_same_identity(self, client_id: str) -> None:
        path = self.folder / PROFILE
        if path.exists() and (known := self.profile().client_id) != client_id:
            raise CliError(
                f"{self.folder} belongs to {known}, not to {client_id}",
                code="configuration",
                rule="home.one-identity",
                next=f"papaver init {client_id} --home FOLDER, with a folder of its own",
            )


def check_folder_ours(folder: Path) -> None:
    """Keys and vault are where nobody else can put, swap or remove a file: the folder is ours, and only we write to it.

    A folder above it may be written to by everybody only as /tmp is, where each removes their own. A folder that does
    not exist is nobody's. Windows keeps its rights elsewhere. Raises CliError.
    """
    if sys.platform == "win32":
        return
    whole = Path(os.path.realpath(folder))
    try:
        found = whole.stat()
        above = [(one, one.stat().st_mode) for one in whole.parents]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unusable(folder, error) from error
    if found.st_uid != os.geteuid():
        raise _not_ours(f"{whole} belongs to another user (uid {found.st_uid})", "use --home with a folder of your own")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _not_ours(
            f"others than its owner may write to {whole} (mode {stat.S_IMODE(found.st_mode):04o})",
            f"see that nothing in it is a stranger's, then: chmod 700 {whole}",
        )
    for one, mode in above:
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _not_ours(
                f"everybody may write to {one} (mode {stat.S_IMODE(mode):04o}), and so exchange {whole}",
                f"chmod o-w {one}, or use --home with another folder",
            )


def _not_ours(what: str, then: str) -> CliError:
    return CliError(what, code="configuration", rule="home.ours", next=then)


def private_folder(folder: Path) -> None:
    """Make a folder and those above it, each new one for its owner alone. Raises OSError."""
    if not folder.parent.exists():
        private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Put a new file in place of the old one, 0600 and on the disk before its name is. Raises ConfigurationError."""
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _identity(profile: Profile, keys: KeyFile) -> Identity:
    return Identity(ClientId(profile.client_id), keys, name=profile.name, redirect_uris=profile.redirect_uris)


def _unusable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{path} cannot be used: {error.strerror}", rule="home.usable", detail=str(error))
