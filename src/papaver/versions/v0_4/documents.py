"""Draft 0.4's `poppy.json` ⇄ CompanyDocument (3.1).

Reading is strict about who the Company is (`protocol_version`, `organization`, `auth.issuer`, `auth.disabled`): any
fault there refuses the document. Each thing on offer is read by itself: an entry with a wrong type, a missing member or
a URL that is not https is left out and becomes a finding; the rest of the document is used (3, 3.3; readings 61).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from pydantic import ValidationError

from papaver.protocol.company import (
    Access,
    Api,
    Auth,
    Changes,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    ExtensionEntry,
    Finding,
    Organization,
    ScopeHint,
    Web,
)
from papaver.protocol.dialect import DocumentCodec, Version
from papaver.protocol.discovery_checks import shown
from papaver.protocol.errors import DiscoveryFailed
from papaver.protocol.negotiation import read_version
from papaver.values.rules import rule
from papaver.versions.v0_4 import wire

__all__ = ["DOCUMENTS", "Documents", "check_has_channel", "check_members", "check_protocol_version"]

W = TypeVar("W", bound=wire.Wire)
N = TypeVar("N", Access, Changes)

REMEDY: Final = "the Company has to correct its document"


class Documents:
    """The codec of draft 0.4's documents."""

    def read(self, document: object) -> CompanyDocument:
        """A decoded `poppy.json` or version document. Raises `DiscoveryFailed` with the rule that is broken."""
        check_members(document)
        head = wire.HeadWire.model_validate(document)
        check_protocol_version(head.protocol_version)
        major, minor = head.protocol_version.split(".")
        reader = _Reader()
        auth = head.auth or wire.AuthWire()
        company = CompanyDocument(
            organization=reader.organization(head.organization),
            protocol_version=Version(int(major), int(minor)),
            supported_versions=dict(reader.supported_versions(head.supported_versions)),
            auth=Auth(
                issuer=auth.issuer,
                disabled=bool(auth.disabled),
                scopes=dict(reader.scopes(auth.scopes)),
                scope_hints=dict(reader.scope_hints(auth.scope_hints)),
            ),
            agent=reader.agent(head.agent),
            apis=tuple(reader.apis(head.apis)),
            web=reader.web(head.web),
            feedback=reader.feedback(head.feedback),
            excluded_tasks=reader.excluded_tasks(head.excluded_tasks),
            extensions=dict(reader.extensions(head.extensions)),
            skill_index=reader.skill_index(head.skill_index),
            findings=tuple(reader.findings),
        )
        check_has_channel(company)
        return company

    def write(self, document: CompanyDocument) -> dict[str, object]:
        """The document to publish. Absent members and defaults are left out."""
        organization = document.organization
        written: dict[str, object] = {
            "protocol_version": str(document.protocol_version),
            "supported_versions": {str(version): url for version, url in document.supported_versions.items()},
            "organization": _present(
                {"name": organization.name, "domain": organization.domain, "logo_uri": organization.logo_uri}
            ),
            "auth": _write_auth(document.auth),
        }
        if document.agent is not None:
            written["agent"] = {"protocols": [_write_protocol(entry) for entry in document.agent.protocols]}
        written["apis"] = [{"type": api.type, "url": api.url, "description": api.description} for api in document.apis]
        if document.feedback is not None:
            written["feedback"] = {"endpoint": document.feedback}
        if document.excluded_tasks is not None:
            written["excluded_tasks"] = {"url": document.excluded_tasks}
        written["extensions"] = {
            name: [{"version": entry.version, **entry.members} for entry in entries]
            for name, entries in document.extensions.items()
        }
        written = _present(written)
        if document.skill_index is not None:
            written["skill_index"] = dict(document.skill_index)
        if document.web is not None:
            written["web"] = _present({"browser_session_endpoint": document.web.browser_session_endpoint})
        return written


DOCUMENTS: Final[DocumentCodec] = Documents()


@rule("document.members")
def check_members(document: object) -> None:
    """3.1: what says who the Company is: all there, of the right types, and an issuer that is https."""
    try:
        wire.HeadWire.model_validate(document)
    except ValidationError as error:
        where, message, _ = _first(error)
        raise DiscoveryFailed(
            "the document does not say who the Company is",
            rule="document.members",
            expected="protocol_version, organization with name and domain, and auth as section 3.1 describes them",
            found=f"{where or '/'}: {message}",
            remedy=REMEDY,
        ) from None


@rule("document.protocol-version")
def check_protocol_version(text: str) -> None:
    """3.1: `protocol_version` is `major.minor`."""
    if read_version(text) is None:
        raise DiscoveryFailed(
            "the document does not say which version it follows",
            rule="document.protocol-version",
            expected="protocol_version as major.minor",
            found=shown(text),
            remedy=REMEDY,
        )


@rule("document.one-channel")
def check_has_channel(document: CompanyDocument) -> None:
    """3.1: at least one of `agent`, `apis` and `web`."""
    if not document.has_channel:
        left_out = "; ".join(f"{finding.where}: {finding.detail}" for finding in document.findings)
        raise DiscoveryFailed(
            "the document offers no channel that can be used",
            rule="document.one-channel",
            expected="agent, apis or web",
            found=left_out or "none of them",
            remedy=REMEDY,
        )


def _first(error: ValidationError) -> tuple[str, str, str]:
    """Where the first fault is (a JSON pointer), what it is, and its type."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return "".join(f"/{part}" for part in fault["loc"]), fault["msg"], fault["type"]


def _present(members: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value not in (None, {}, [])}


def _write_auth(auth: Auth) -> dict[str, object]:
    return _present(
        {
            "issuer": auth.issuer,
            "disabled": auth.disabled or None,
            "scopes": dict(auth.scopes),
            "scope_hints": {
                name: {"changes": hint.changes.value, "personal_data": hint.personal_data}
                for name, hint in auth.scope_hints.items()
            },
        }
    )


def _write_protocol(entry: ConversationProtocol) -> dict[str, object]:
    access = None if entry.access is Access.SESSION else entry.access.value
    return _present({"type": entry.type, "endpoint": entry.endpoint, "access": access})


@dataclass(slots=True)
class _Reader:
    """Reads what is on offer, part by part, and keeps what it had to leave out."""

    findings: list[Finding] = field(default_factory=list[Finding])

    def _left_out(self, where: str, detail: str, rule_id: str = "document.part") -> None:
        self.findings.append(Finding(rule_id, where, detail))

    def _part(self, model: type[W], value: object, where: str) -> W | None:
        """`value` as this model; None when it is absent, or when it is not one, which becomes a finding."""
        if value is None:
            return None
        try:
            return model.model_validate(value)
        except ValidationError as error:
            pointer, message, kind = _first(error)
            self._left_out(where + pointer, message, "document.https" if kind == wire.NOT_HTTPS else "document.part")
            return None

    def _object(self, value: object, where: str) -> Iterator[tuple[str, object]]:
        """Names and members of an object; nothing when it is absent or no object."""
        if isinstance(value, dict):
            yield from cast("dict[str, object]", value).items()
        elif value is not None:
            self._left_out(where, "not an object")

    def _list(self, value: object, where: str) -> Iterator[tuple[str, object]]:
        """Pointers and items of a list; nothing when it is absent or no list."""
        if isinstance(value, list):
            for index, item in enumerate(cast("list[object]", value)):
                yield f"{where}/{index}", item
        elif value is not None:
            self._left_out(where, "not a list")

    def organization(self, head: wire.OrganizationWire) -> Organization:
        logo = None if head.logo_uri is None else {"logo_uri": head.logo_uri}
        part = self._part(wire.LogoWire, logo, "/organization")
        return Organization(head.name, head.domain, None if part is None else part.logo_uri)

    def supported_versions(self, value: object) -> Iterator[tuple[Version, str]]:
        for name, url in self._object(value, "/supported_versions"):
            version = read_version(name)
            if version is None:
                self._left_out(f"/supported_versions/{name}", "the name is not major.minor")
            elif (part := self._part(wire.VersionUrlWire, {"url": url}, f"/supported_versions/{name}")) is not None:
                yield version, part.url

    def scopes(self, value: object) -> Iterator[tuple[str, str]]:
        for name, description in self._object(value, "/auth/scopes"):
            part = self._part(wire.ScopeWire, {"description": description}, f"/auth/scopes/{name}")
            if part is not None:
                yield name, part.description

    def scope_hints(self, value: object) -> Iterator[tuple[str, ScopeHint]]:
        for name, hint in self._object(value, "/auth/scope_hints"):
            part = self._part(wire.ScopeHintWire, hint, f"/auth/scope_hints/{name}")
            if part is not None:
                yield name, ScopeHint(_named(Changes, part.changes, Changes.IRREVERSIBLE), part.personal_data)

    def agent(self, value: object) -> CompanyAgent | None:
        part = self._part(wire.AgentWire, value, "/agent")
        if part is None:
            return None
        protocols: list[ConversationProtocol] = []
        for where, item in self._list(part.protocols, "/agent/protocols"):
            entry = self._part(wire.ProtocolWire, item, where)
            if entry is not None:
                access = _named(Access, entry.access, Access.SESSION)
                protocols.append(ConversationProtocol(entry.type, entry.endpoint, access))
        return CompanyAgent(tuple(protocols))

    def apis(self, value: object) -> Iterator[Api]:
        for where, item in self._list(value, "/apis"):
            entry = self._part(wire.ApiWire, item, where)
            if entry is not None:
                yield Api(entry.type, entry.url, entry.description)

    def web(self, value: object) -> Web | None:
        part = self._part(wire.WebWire, value, "/web")
        if part is not None:
            return Web(part.browser_session_endpoint)
        # The website is there although its join endpoint cannot be used: it is browsed as by any visitor.
        return Web() if isinstance(value, dict) else None

    def feedback(self, value: object) -> str | None:
        part = self._part(wire.FeedbackWire, value, "/feedback")
        return None if part is None else part.endpoint

    def excluded_tasks(self, value: object) -> str | None:
        part = self._part(wire.ExcludedTasksWire, value, "/excluded_tasks")
        return None if part is None else part.url

    def extensions(self, value: object) -> Iterator[tuple[str, tuple[ExtensionEntry, ...]]]:
        for name, listed in self._object(value, "/extensions"):
            entries: dict[str, ExtensionEntry] = {}
            for where, item in self._list(listed, f"/extensions/{name}"):
                part = self._part(wire.ExtensionWire, item, where)
                if part is None:
                    continue
                if part.version in entries:
                    self._left_out(where, f"version {part.version} is listed twice")
                    continue
                members = cast("dict[str, object]", item)
                entries[part.version] = ExtensionEntry(
                    part.version, {key: member for key, member in members.items() if key != "version"}
                )
            if entries:
                yield name, tuple(entries.values())

    def skill_index(self, value: object) -> Mapping[str, object] | None:
        members = dict(self._object(value, "/skill_index"))
        return members if isinstance(value, dict) else None


def _named(kind: Callable[[object], N], value: object, otherwise: N) -> N:
    """The member of an enumeration that `value` names, else what an unfamiliar value counts as."""
    try:
        return kind(value)
    except ValueError:
        return otherwise
