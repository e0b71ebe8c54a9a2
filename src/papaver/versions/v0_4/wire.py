"""The members of draft 0.4's `poppy.json` as strict models (3.1). Unknown members are ignored, wrong types are not.

The document is not one model: what says who the Company is has to hold as a whole, while each thing it offers stands
or falls by itself (`documents.py`). `null` counts as absent.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic_core import PydanticCustomError

from papaver.web.urls import UrlError, check_https

__all__ = [
    "NOT_HTTPS",
    "AgentWire",
    "ApiWire",
    "AuthWire",
    "ExcludedTasksWire",
    "ExtensionWire",
    "FeedbackWire",
    "HeadWire",
    "HttpsUrl",
    "LogoWire",
    "OrganizationWire",
    "ProtocolWire",
    "ScopeHintWire",
    "ScopeWire",
    "VersionUrlWire",
    "WebWire",
]

NOT_HTTPS = "not_https"
"""The error type of a URL that section 3 forbids."""

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]


def _https(url: str) -> str:
    try:
        check_https(url)
    except UrlError:
        raise PydanticCustomError(NOT_HTTPS, "not an https URL") from None
    return url


def _https_where_text(value: object) -> object:
    return _https(value) if isinstance(value, str) else value


HttpsUrl: TypeAlias = Annotated[str, AfterValidator(_https)]


class Wire(BaseModel):
    """A part of the document, read without conversions."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class OrganizationWire(Wire):
    name: Text
    domain: Text
    logo_uri: object = None


class AuthWire(Wire):
    issuer: HttpsUrl | None = None
    disabled: bool | None = None
    scopes: object = None
    scope_hints: object = None


class HeadWire(Wire):
    """What says who the Company is, and the rest as it came."""

    protocol_version: str
    organization: OrganizationWire
    auth: AuthWire | None = None
    supported_versions: object = None
    agent: object = None
    apis: object = None
    web: object = None
    feedback: object = None
    excluded_tasks: object = None
    extensions: object = None
    skill_index: object = None


class LogoWire(Wire):
    logo_uri: HttpsUrl


class VersionUrlWire(Wire):
    url: HttpsUrl


class ScopeWire(Wire):
    description: str


class ScopeHintWire(Wire):
    """`changes` may be anything: what is not recognised counts as irreversible (4.7)."""

    changes: object
    personal_data: bool


class AgentWire(Wire):
    protocols: list[object]


class ProtocolWire(Wire):
    """`access` may be anything: what is not recognised counts as absent (3.2)."""

    type: Text
    endpoint: HttpsUrl
    access: object = None


class ApiWire(Wire):
    type: Text
    url: HttpsUrl
    description: str


class WebWire(Wire):
    browser_session_endpoint: HttpsUrl | None = None


class FeedbackWire(Wire):
    endpoint: HttpsUrl


class ExcludedTasksWire(Wire):
    url: HttpsUrl


class ExtensionWire(Wire):
    """The other members are the extension's own (3.3); an `endpoint` is a URL wherever one is given as text."""

    version: Text
    endpoint: Annotated[object, AfterValidator(_https_where_text)] = None
