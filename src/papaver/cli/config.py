"""`papaver.toml` and MODULE:NAME: how the command line comes to a Company, whole or not at all."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from papaver.cli.config_store import store_of
from papaver.cli.failures import CliError
from papaver.cli.theirs import Theirs, frames_of, shown
from papaver.company.app import Company
from papaver.company.offer import DEFAULT_PROTOCOLS, Mcp, OpenApi
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Texts
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import Retirement

if TYPE_CHECKING:
    from papaver.adapters.asgi import ASGIApp

__all__ = ["Found", "ServerTable", "companies_of", "find", "the_company"]

T = TypeVar("T")
_CHOICES = {"accept": ("all", "allowed"), "type": ("openapi", "mcp")}
_EXPECTED = re.compile("^Expected")
NAME = "papaver.toml"
EXAMPLES = "app:company or app:app"


class ServerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[server]`: what `papaver company serve` takes when no flag says otherwise."""

    host: str = "127.0.0.1"
    port: int = 8443
    tls_cert: str | None = None
    tls_key: str | None = None
    trusted_proxies: tuple[str, ...] = ()


class ApiTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[apis]]`."""

    type: Literal["openapi", "mcp"]
    url: str
    description: str


class RetirementTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[retirements."0.3"]`: a version's dates."""

    deprecated: datetime | None = None
    sunset: datetime | None = None


class CompanyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole `papaver.toml`. Paths are relative to its folder.

    `store` is a file, postgresql://…, or env:NAME for a variable that holds either; `redis` a URL or env:NAME.
    """

    domain: str
    name: str
    base_url: str
    store: str = "poppy.db"
    redis: str | None = None
    staffed: bool = False
    handler: str | None = None
    logo_uri: str | None = None
    website: bool = False
    protocols: tuple[str, ...] = DEFAULT_PROTOCOLS
    local_path: str | None = None
    accept: Literal["all", "allowed"] = "all"
    apis: tuple[ApiTable, ...] = ()
    limits: dict[str, int] = {}
    texts: dict[str, str] = {}
    retirements: dict[str, RetirementTable] = {}
    server: ServerTable = ServerTable()


@dataclass(frozen=True)
class Found:
    """What a configuration led to: Companies, the app they are in if there is one, and `[server]`."""

    companies: tuple[Company, ...]
    app: ASGIApp | None = None
    server: ServerTable = field(default_factory=ServerTable)
    folder: Path = field(default_factory=Path)


def find(config: Path | None, target: str | None) -> Found:
    """A Company from MODULE:NAME, else from the file, else from `papaver.toml` here. Raises ConfigurationError."""
    if target is not None:
        if config is not None:
            raise CliError("--config and MODULE:NAME are both given", code="usage", next="leave out one of them")
        return _from_module(target)
    return _from_file(config or Path(NAME))


def the_company(found: Found) -> Company:
    """The one Company. Raises ConfigurationError when there are several, or none."""
    if len(found.companies) != 1:
        names = ", ".join(company.offer.domain for company in found.companies) or "none"
        raise CliError(
            f"expected one Company, found {names}",
            code="configuration",
            rule="config.one-company",
            next=f"name the Company, or the app that has it, such as {EXAMPLES}",
        )
    return found.companies[0]


def _from_file(path: Path) -> Found:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CliError(
            f"there is no {path}", code="configuration", rule="config.file", next="papaver company init"
        ) from None
    except OSError as error:
        raise _wrong(path, str(error.strerror)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, f"it is not TOML: {error}") from None
    _check_known(path, document)
    try:
        settings = msgspec.convert(document, CompanyFile)
    except msgspec.ValidationError as error:
        raise _wrong(path, _said_of_key(str(error))) from None
    handler = None if settings.handler is None else _named(settings.handler, path.parent.resolve(), "app:answer")
    company = Company(
        domain=settings.domain,
        name=settings.name,
        base_url=settings.base_url,
        store=store_of(path, settings.store, settings.redis),
        staffed=settings.staffed,
        logo_uri=settings.logo_uri,
        apis=[(OpenApi if api.type == "openapi" else Mcp)(api.url, api.description) for api in settings.apis],
        website=settings.website,
        conversations=handler is not None,
        protocols=settings.protocols,
        retirements={version: _retirement(table) for version, table in settings.retirements.items()},
        local_path=settings.local_path,
        accept=settings.accept,
        limits=_typed(path, "limits", CompanyLimits, settings.limits),
        texts=_typed(path, "texts", Texts, settings.texts),
    )
    if handler is not None:
        company.conversation(cast("Any", handler))
    return Found((company,), None, settings.server, path.parent)


def _check_known(path: Path, document: Mapping[str, object]) -> None:
    """All unknown keys at once, each with its table."""
    tables: dict[str, type[msgspec.Struct]] = {"": CompanyFile, "server": ServerTable}
    unknown: list[str] = []
    known_keys: list[str] = []
    for table, struct in tables.items():
        members = document if not table else document.get(table)
        known = [f"{table}.{key}" if table else key for key in struct.__struct_fields__]
        known_keys += known
        if isinstance(members, Mapping):
            named = [f"{table}.{key}" if table else key for key in cast("Mapping[str, object]", members)]
            unknown += [key for key in named if key not in known]
    if unknown:
        raise _wrong(path, f"unknown: {_with_nearest(unknown, known_keys)}")


def _typed(path: Path, table: str, kind: type[T], values: Mapping[str, Any]) -> T:
    known = [one.name for one in fields(cast("Any", kind))]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise _wrong(path, f"unknown in [{table}]: {_with_nearest(unknown, known)}")
    return kind(**values)


def _with_nearest(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Each unknown key with the known one that it looks like; all known ones when none looks like it."""
    told: list[str] = []
    for key in unknown:
        near = difflib.get_close_matches(key, known, 1)
        told.append(f"{key} (is it {near[0]}?)" if near else key)
    alike = all("?" in one for one in told)
    return ", ".join(told) if alike else f"{', '.join(told)}; known are {', '.join(known)}"


def _said_of_key(said: str) -> str:
    """msgspec's sentence with the key in front, as it is written in the file."""
    what, _, where = said.partition(" - at `$")
    key = where.strip("`").removeprefix(".")
    what = _EXPECTED.sub("expected", what)
    choices = _CHOICES.get(key.rpartition(".")[2], ())
    if choices:
        what += f", expected {' or '.join(map(repr, choices))}"
    return f"{key}: {what}" if key else what


def _retirement(table: RetirementTable) -> Retirement:
    return Retirement(_seconds(table.deprecated), _seconds(table.sunset))


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _from_module(target: str) -> Found:
    """NAME is a Company, an app that has one (`Poppy(app, company)`), its Poppy, or a function that makes one."""
    value = _named(target, Path.cwd(), EXAMPLES)
    if inspect.isfunction(value) and not inspect.signature(value).parameters:
        value = _run_theirs(target, Path.cwd(), value)
    if isinstance(value, Company):
        return Found((value,))
    inside = getattr(value, "company", None)
    if isinstance(inside, Company):
        return Found((inside,))
    if _is_app(value):
        return Found(companies_of(value), cast("ASGIApp", value))
    raise CliError(
        f"{target} is neither a Company nor an app",
        code="configuration",
        rule="config.target",
        next=f"name one, such as {EXAMPLES}, or a function without arguments that makes one",
    )


def _is_app(value: object) -> bool:
    """Whether it can be called as ASGI says: with scope, receive and send."""
    if not callable(value) or inspect.isclass(value):
        return False
    try:
        inspect.signature(value).bind(None, None, None)
    except (TypeError, ValueError):
        return False
    return True


def companies_of(app: object) -> tuple[Company, ...]:
    """The Companies that were added to an app's routes."""
    routes: list[object] = getattr(getattr(app, "router", None), "routes", [])
    return tuple(one for route in routes if isinstance(one := getattr(route, "company", None), Company))


def _named(target: str, folder: Path, example: str) -> object:
    """The object MODULE:NAME, with modules of `folder` found first. Raises ConfigurationError."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise CliError(
            f"{target!r} is not MODULE:NAME", code="configuration", rule="config.target", next=f"for example {example}"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    found = _run_theirs(target, folder, lambda: import_module(module))
    try:
        return getattr(found, name)
    except AttributeError:
        raise CliError(
            f"{target}: {module} has no {name}",
            code="configuration",
            rule="config.target",
            next=f"define {name} in {module}",
        ) from None


def _run_theirs(target: str, folder: Path, call: Callable[[], object]) -> object:
    """Run somebody's own code. What it raises is told by their frames. Raises ConfigurationError."""
    with Theirs(lambda error: _raised(target, folder, error)):
        return call()


def _raised(target: str, folder: Path, error: Exception) -> CliError:
    module = target.partition(":")[0]
    if isinstance(error, ModuleNotFoundError):
        return _module_missing(target, module, error, folder)
    return CliError(
        f"{target} raised {type(error).__name__}",
        code="configuration",
        rule="config.target",
        detail=shown(error),
        next=f"correct it; python -c 'import {module}' shows it whole",
    )


def _module_missing(target: str, module: str, error: ModuleNotFoundError, folder: Path) -> CliError:
    """Either there is no such module, or it imports another one that is not there."""
    missing = error.name or str(error)
    if f"{module}.".startswith(f"{missing}."):
        return CliError(
            f"{target}: there is no module {missing}",
            code="configuration",
            rule="config.target",
            next=f"put {module.partition('.')[0]}.py into {folder}, or install {missing}",
        )
    frames = frames_of(error)
    where = f", line {frames[-1].lineno} of {frames[-1].filename}" if frames else ""
    return CliError(
        f"{target}: {module} imports {missing}, and there is no such module{where}",
        code="configuration",
        rule="config.target",
        next=f"install {missing}, or correct the import",
    )


def _wrong(path: Path, what: str) -> ConfigurationError:
    return ConfigurationError(f"{path}: {what}", rule="config.file")
