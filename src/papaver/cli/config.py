"""`papaver.toml` and MODULE:NAME: how the command line comes to a Company, whole or not at all."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from papaver.cli.failures import CliError
from papaver.company.app import Company
from papaver.company.offer import DEFAULT_PROTOCOLS, Mcp, OpenApi
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Texts
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import Retirement
from papaver.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from papaver.adapters.asgi import ASGIApp

__all__ = ["Found", "ServerTable", "companies_of", "find", "the_company"]

T = TypeVar("T")
NAME = "papaver.toml"


class ServerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[server]`: what `papaver company serve` takes when no flag says otherwise."""

    host: str = "127.0.0.1"
    port: int = 8443
    tls_cert: str | None = None
    tls_key: str | None = None


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
    """A whole `papaver.toml`. Paths are relative to its folder."""

    domain: str
    name: str
    base_url: str
    store: str = "poppy.db"
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
            next="name the Company itself as MODULE:NAME",
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
        raise _wrong(path, str(error)) from None
    handler = None if settings.handler is None else _named(settings.handler, path.parent.resolve())
    if handler is not None and not callable(handler):
        raise _wrong(path, f"handler is {settings.handler!r}, which is not a function")
    company = Company(
        domain=settings.domain,
        name=settings.name,
        base_url=settings.base_url,
        store=SqliteStore(path.parent / settings.store),
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
    for table, struct in tables.items():
        members = document if not table else document.get(table)
        if isinstance(members, Mapping):
            known = struct.__struct_fields__
            named = cast("Mapping[str, object]", members)
            unknown += [f"{table}.{key}" if table else key for key in named if key not in known]
    if unknown:
        raise _wrong(path, f"unknown: {', '.join(unknown)}; known are {', '.join(CompanyFile.__struct_fields__)}")


def _typed(path: Path, table: str, kind: type[T], values: Mapping[str, Any]) -> T:
    known = [one.name for one in fields(cast("Any", kind))]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise _wrong(path, f"unknown in [{table}]: {', '.join(unknown)}; known are {', '.join(known)}")
    return kind(**values)


def _retirement(table: RetirementTable) -> Retirement:
    return Retirement(_seconds(table.deprecated), _seconds(table.sunset))


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _from_module(target: str) -> Found:
    """NAME is a Company, an app that has one (`Poppy(app, company)`), its Poppy, or a function that makes one."""
    value = _named(target, Path.cwd())
    if inspect.isfunction(value) and not inspect.signature(value).parameters:
        value = value()
    if isinstance(value, Company):
        return Found((value,))
    inside = getattr(value, "company", None)
    if isinstance(inside, Company):
        return Found((inside,))
    if callable(value):
        return Found(companies_of(value), cast("ASGIApp", value))
    raise CliError(
        f"{target} is neither a Company nor an app",
        code="configuration",
        rule="config.target",
        next="name a Company, an ASGI app, or a function without arguments that makes one",
    )


def companies_of(app: object) -> tuple[Company, ...]:
    """The Companies that were added to an app's routes."""
    routes: list[object] = getattr(getattr(app, "router", None), "routes", [])
    return tuple(one for route in routes if isinstance(one := getattr(route, "company", None), Company))


def _named(target: str, folder: Path) -> object:
    """The object MODULE:NAME, with modules of `folder` found first. Raises ConfigurationError."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise CliError(
            f"{target!r} is not MODULE:NAME", code="configuration", rule="config.target", next="for example app:answer"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise CliError(
            f"{target}: there is no module {error.name}",
            code="configuration",
            rule="config.target",
            next=f"put {module.partition('.')[0]}.py into {folder}, or install {error.name}",
        ) from None
    except AttributeError:
        raise CliError(
            f"{target}: {module} has no {name}",
            code="configuration",
            rule="config.target",
            next=f"define {name} in {module}",
        ) from None


def _wrong(path: Path, what: str) -> ConfigurationError:
    return ConfigurationError(f"{path}: {what}", rule="config.file")
