"""Read an OpenAPI description (3.0, 3.1; JSON) as far as a Personal Agent needs it: URLs, parameters, security.

It is a document of another party, and often an imperfect one: what is broken is left out with a finding, and the rest
is used. Only the form of the whole can refuse it. Nothing is fetched: a reference to another document leads nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from papaver.protocol.openapi_pointers import Members, follow, members_of, seen
from papaver.protocol.openapi_urls import read_path, read_servers
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, loads_object

__all__ = [
    "MAX_BYTES",
    "InvalidDescription",
    "Need",
    "OpenApi",
    "Operation",
    "Parameter",
    "Place",
    "check_openapi_version",
    "read_document",
    "read_openapi",
]

MAX_BYTES: Final = 5 * 1024 * 1024
MAX_DEPTH: Final = 200
MOST_OPERATIONS: Final = 2000
MOST_PARAMETERS: Final = 100
MOST_NEEDS: Final = 20
MOST_SCOPES: Final = 1000
MOST_FINDINGS: Final = 100
LONGEST: Final = 2000
"""Characters of a text that is kept, such as a summary."""

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
WITH_SCOPES: Final = ("oauth2", "openIdConnect")
TOKEN_SCHEMES: Final = ("bearer", "dpop")
_VERSION: Final = re.compile(r"3\.[01]\.[0-9]{1,3}(?:-[0-9A-Za-z.]+)?")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")
_OURS: Final = frozenset({"accept", "content-type", "authorization", "dpop"})
"""Header parameters that a description may not set (OpenAPI 4.7.12.1), and what a Session sets itself."""

Place: TypeAlias = Literal["path", "query", "header"]


class InvalidDescription(PapaverError):
    """A document that is no OpenAPI description which can be read here."""

    code = "invalid_description"
    description = "this is no OpenAPI description in JSON"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation. `exploded`: a list is repeated as `a=1&a=2`, not joined as `a=1,2`."""

    name: str
    place: Place
    required: bool = False
    description: str = ""
    exploded: bool = True


@dataclass(frozen=True, slots=True)
class Need:
    """One way to be allowed: all of it together.

    `account`  an access token         `scopes`  that it has to have
    `others`   security schemes that are neither OAuth nor a bearer token, by their names in the description
    """

    account: bool = False
    scopes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `path`        as requests have it, with `{name}` places      `servers`  https URLs that it is below
    `body_types`  content types of the body, in the description's order; empty for none
    `needs`       ways to be allowed, any of which will do; empty when nothing is asked for
    """

    method: str
    path: str
    servers: tuple[str, ...]
    operation_id: str | None = None
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    body_types: tuple[str, ...] = ()
    body_required: bool = False
    needs: tuple[Need, ...] = ()
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class OpenApi:
    """What an API offers. `url` is where it was found; `scopes` describes scopes, by name (4.7).

    `findings` say what was left out and where: (JSON pointer, reason).
    """

    url: str
    title: str
    operations: tuple[Operation, ...]
    scopes: Mapping[str, str]
    findings: tuple[tuple[str, str], ...] = ()

    def named(self, operation_id: str) -> Operation | None:
        """The operation of this `operationId`; the first, if the description has it twice."""
        return next((one for one in self.operations if one.operation_id == operation_id), None)


def read_openapi(body: bytes, url: str) -> OpenApi:
    """The description in `body`, at most 5 MiB of JSON, that was found at `url`. Raises InvalidDescription."""
    try:
        document = loads_object(body, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except JsonError as error:
        raise InvalidDescription(
            f"this is no OpenAPI description that is read here: {error.description}; YAML is not read",
            rule="openapi.json",
            detail=error.detail,
        ) from None
    return read_document(document, url)


def read_document(document: Members, url: str) -> OpenApi:
    """As `read_openapi`, from the decoded document."""
    check_openapi_version(document)
    return _Reader(document, url).read()


@rule("openapi.version")
def check_openapi_version(document: Members) -> None:
    """Section 7 names OpenAPI 3.0 and 3.1. Raises InvalidDescription for anything else."""
    version = document.get("openapi")
    if not isinstance(version, str) or _VERSION.fullmatch(version) is None:
        raise InvalidDescription(
            "this is no OpenAPI description of version 3.0 or 3.1",
            rule="openapi.version",
            detail=f"`openapi` is {version if isinstance(version, str) else type(version).__name__:.40}",
        )


@dataclass(slots=True)
class _Reader:
    """Reads one document, and notes what it leaves out."""

    document: Members
    url: str
    findings: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    schemes: dict[str, Members] = field(default_factory=dict[str, Members])

    def read(self) -> OpenApi:
        components = members_of(self.document.get("components"))
        for name, value in members_of(components.get("securitySchemes")).items():
            scheme = follow(self.document, value)
            if scheme is None:
                self.found(seen("components", "securitySchemes", name), "no scheme that can be read")
            else:
                self.schemes[name] = scheme
        return OpenApi(
            url=self.url,
            title=_text(members_of(self.document.get("info")).get("title")),
            operations=tuple(self.operations()),
            scopes=self.scopes(),
            findings=tuple(self.findings),
        )

    def found(self, where: str, what: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append((where, what))

    def scopes(self) -> dict[str, str]:
        """Scope → description, of every flow of every OAuth scheme; the first one that says something wins."""
        described: dict[str, str] = {}
        for name, scheme in self.schemes.items():
            for flow in members_of(scheme.get("flows")).values():
                for scope, text in members_of(members_of(flow).get("scopes")).items():
                    if _SCOPE.fullmatch(scope) is None:
                        self.found(seen("components", "securitySchemes", name), "a scope that is none (RFC 6749 3.3)")
                    elif len(described) < MOST_SCOPES:
                        described[scope] = described.get(scope) or _text(text)
        return described

    def operations(self) -> Iterator[Operation]:
        """Every operation of every path that can be used."""
        servers = self.servers(self.document, "")
        if servers is None:
            servers = read_servers([{"url": "/"}], self.url, lambda _, __: None) or ()
        count = 0
        for template, value in members_of(self.document.get("paths")).items():
            where = seen("paths", template)
            if template.startswith("x-"):
                continue
            path, item = read_path(template), follow(self.document, value)
            if path is None or item is None:
                self.found(where, "no path below a server" if path is None else "no path item that can be read")
                continue
            here = self.servers(item, where)
            shared = self.parameters(item, where, path)
            for method in METHODS:
                if method not in item:
                    continue
                if count == MOST_OPERATIONS:
                    self.found("/paths", f"only the first {MOST_OPERATIONS} operations are read")
                    return
                operation = self.operation(method, path, item[method], where, servers if here is None else here, shared)
                if operation is not None:
                    count += 1
                    yield operation

    def operation(
        self,
        method: str,
        path: str,
        value: object,
        above: str,
        servers: tuple[str, ...],
        shared: Mapping[tuple[str, Place], Parameter],
    ) -> Operation | None:
        where = above + seen(method)
        if not isinstance(value, dict):
            self.found(where, "no operation")
            return None
        operation = cast("Members", value)
        own = self.servers(operation, where)
        parameters = {**shared, **self.parameters(operation, where, path)}
        body = follow(self.document, operation.get("requestBody"))
        if body is None and "requestBody" in operation:
            self.found(where + seen("requestBody"), "no request body that can be read")
        described = members_of(body)
        name = operation.get("operationId")
        security = operation.get("security", self.document.get("security"))
        return Operation(
            method=method.upper(),
            path=path,
            servers=servers if own is None else own,
            operation_id=name if isinstance(name, str) and 0 < len(name) <= LONGEST else None,
            summary=_text(operation.get("summary")) or _text(operation.get("description")),
            parameters=tuple(parameters.values()),
            body_types=tuple(members_of(described.get("content")))[:MOST_NEEDS],
            body_required=described.get("required") is True,
            needs=self.needs(security, where + seen("security")),
            deprecated=operation.get("deprecated") is True,
        )

    def servers(self, holder: Members, where: str) -> tuple[str, ...] | None:
        place = where + seen("servers")
        return read_servers(holder.get("servers"), self.url, lambda at, what: self.found(place + seen(at), what))

    def parameters(self, holder: Members, above: str, path: str) -> dict[tuple[str, Place], Parameter]:
        listed = holder.get("parameters")
        read: dict[tuple[str, Place], Parameter] = {}
        for at, value in enumerate(cast("list[object]", listed) if isinstance(listed, list) else []):
            where = above + seen("parameters", at)
            if at == MOST_PARAMETERS:
                self.found(where, f"only the first {MOST_PARAMETERS} parameters are read")
                break
            found = follow(self.document, value)
            parameter = None if found is None else _parameter(found)
            if parameter is None:
                self.found(where, "no parameter that can be read")
            elif parameter.place == "path" and f"{{{parameter.name}}}" not in path:
                self.found(where, "a parameter of the path that the path does not have")
            elif not _is_ours(parameter):
                read[parameter.name, parameter.place] = parameter
        return read

    def needs(self, listed: object, where: str) -> tuple[Need, ...]:
        """The alternatives of a `security` member; one that cannot be read is no way in, so it is left out.

        An empty object among them says that nothing is needed.
        """
        if not isinstance(listed, list):
            return ()
        needs: dict[Need, None] = {}
        for at, value in enumerate(cast("list[object]", listed)[:MOST_NEEDS]):
            need = self.need(value)
            if need is None:
                self.found(where + seen(at), "a requirement of a security scheme that cannot be read")
            else:
                needs[need] = None
        return tuple(needs)

    def need(self, value: object) -> Need | None:
        if not isinstance(value, dict):
            return None
        account, scopes, others = False, dict[str, None](), list[str]()
        for name, wanted in cast("Members", value).items():
            scheme = self.schemes.get(name)
            if scheme is None or not isinstance(wanted, list):
                return None
            kind = scheme.get("type")
            if kind in WITH_SCOPES:
                account = True
                for scope in cast("list[object]", wanted):
                    if not isinstance(scope, str) or _SCOPE.fullmatch(scope) is None:
                        return None
                    scopes[scope] = None
            elif kind == "http" and str(scheme.get("scheme")).lower() in TOKEN_SCHEMES:
                account = True
            else:
                others.append(name)
        return Need(account, tuple(scopes), tuple(others))


def _parameter(found: Members) -> Parameter | None:
    name, place = found.get("name"), found.get("in")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST or place not in ("path", "query", "header"):
        return None
    return Parameter(
        name=name,
        place=place,
        required=place == "path" or found.get("required") is True,
        description=_text(found.get("description")),
        exploded=found.get("explode", place == "query") is True,
    )


def _is_ours(parameter: Parameter) -> bool:
    name = parameter.name.lower()
    return parameter.place == "header" and (name in _OURS or name.startswith("poppy-"))


def _text(value: object) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""
