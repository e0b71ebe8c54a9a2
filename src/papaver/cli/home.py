"""The folder of a Personal Agent on this machine: who it is, its keys, its vault, and the documents it publishes."""

from __future__ import annotations

import os
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

    def profile(self) -> Profile:
        """Who the Personal Agent is. Raises ConfigurationError when nobody said so yet."""
        path = self.folder / PROFILE
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
