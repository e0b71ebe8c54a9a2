"""What the steps of discovery hand to each other: what was served, which version was chosen, what was checked."""

from __future__ import annotations

from dataclasses import dataclass

from papaver.oauth.metadata import ServerMetadata
from papaver.protocol.company import CompanyDocument
from papaver.protocol.dialect import Version
from papaver.protocol.terms import CompanyId

__all__ = ["CheckResult", "Checks", "Choice", "Discovered", "Served"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of section 3 and how it ended. With `ok` False it is a finding that does not stop discovery."""

    rule: str
    ok: bool
    detail: str


class Checks:
    """The checks made so far, in order. One is made per discovery and handed from step to step."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[CheckResult] = []

    def passed(self, rule: str, detail: str) -> None:
        self._made.append(CheckResult(rule, True, detail))

    def noted(self, rule: str, detail: str) -> None:
        """Something is wrong with the document, but nobody is mistaken for another by it."""
        self._made.append(CheckResult(rule, False, detail))

    @property
    def made(self) -> tuple[CheckResult, ...]:
        return tuple(self._made)


@dataclass(frozen=True, slots=True)
class Served:
    """`poppy.json` as it was served, read as far as every version is read (3.4): the rest belongs to its dialect.

    `url`                 the last URL, after redirects; the base of its relative references (9.4)
    `host`                the host that served it, in lowercase
    `body`                the decoded document
    `version`             its `protocol_version`
    `supported_versions`  the other versions with the URLs of their documents, without those that may not be used
    `domain`, `issuer`    `organization.domain` and `auth.issuer` where they are strings; only compared, across versions
    """

    url: str
    host: str
    body: object
    version: Version
    supported_versions: tuple[tuple[Version, str], ...]
    domain: str | None
    issuer: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which document to use, and which of our versions to speak.

    `listed`  the version of the document
    `spoken`  ours, compatible with it: the dialect that reads the document, and what `Poppy-Version` declares
    `url`     where the document is; None when it is `poppy.json` itself
    """

    listed: Version
    spoken: Version
    url: str | None


@dataclass(frozen=True, slots=True)
class Discovered:
    """A Company that every check of section 3 let through.

    `domain`      the domain that was asked for, in lowercase; after a redirect the document names its own
    `identifier`  what Session JWTs are addressed to, and User IDs belong to
    `issuer`      None when the Company has none. It may equal `https://{domain}`, so it is kept beside the identifier
    `version`     the version that we speak with it
    `url`         the last URL of `poppy.json`
    `server`      the issuer's metadata; None without an issuer
    """

    domain: str
    identifier: CompanyId
    issuer: str | None
    document: CompanyDocument
    version: Version
    url: str
    server: ServerMetadata | None
    checks: tuple[CheckResult, ...]
