"""The errors of the protocol, one class per code of sections 3.3, 3.4, 7 and 8.13, and what the two parties raise.

PapaverError
├── PoppyError                  a Company refuses a request; the dialect's table gives status and place
│   ├── InvalidSession          invalid_session             5.3, 7
│   ├── SessionEnded            session_ended               5.5, 7
│   ├── VersionUnsupported      version_unsupported         3.4, 7
│   ├── ExtensionRequired       extension_required          3.3
│   ├── AccountNeeded           (401 challenge, no code)    7, 8.2
│   ├── InvalidToken            invalid_token               7
│   │   └── ProofNonceNeeded    use_dpop_nonce              RFC 9449 9
│   ├── InsufficientScope       insufficient_scope          7
│   ├── ConversationNotFound    conversation_not_found      8.13
│   ├── ConversationClosed      conversation_closed         8.13
│   ├── DirectConversationOpen  direct_conversation_open    8.13
│   ├── MessageIdConflict       message_id_conflict         8.13
│   ├── InvalidCursor           invalid_cursor              8.13
│   ├── CursorExpired           cursor_expired              8.13
│   ├── InvalidRequest          invalid_request             8.13
│   ├── PayloadTooLarge         invalid_request, 413        readings 37
│   ├── RateLimited             429 with Retry-After        5.6
│   └── TemporarilyUnavailable  503 with Retry-After        readings 15
├── DiscoveryFailed             the Personal Agent does not use this Company's documents
├── NotADestination             a request would carry the Session header where it must not go (5.2)
├── SignInNeeded                the User has to sign in first
├── Refused                     the Company answered with an error that no recovery fits
├── Misbehaved                  the other party broke a MUST
└── ConfigurationError          a setting that cannot work; raised at construction
"""

from __future__ import annotations

from papaver.values.errors import PapaverError
from papaver.values.strict_json import JsonError, dumps, loads_object
from papaver.values.told import told
from papaver.web.messages import Response

__all__ = [
    "AccountNeeded",
    "ConfigurationError",
    "ConversationClosed",
    "ConversationNotFound",
    "CursorExpired",
    "DirectConversationOpen",
    "DiscoveryFailed",
    "ExtensionRequired",
    "InsufficientScope",
    "InvalidCursor",
    "InvalidRequest",
    "InvalidSession",
    "InvalidToken",
    "MessageIdConflict",
    "Misbehaved",
    "NotADestination",
    "PayloadTooLarge",
    "PoppyError",
    "ProofNonceNeeded",
    "RateLimited",
    "Refused",
    "SessionEnded",
    "SignInNeeded",
    "TemporarilyUnavailable",
    "VersionUnsupported",
]


class PoppyError(PapaverError):
    """A Company's refusal. It knows its code, never its status or place."""


class InvalidSession(PoppyError):
    code = "invalid_session"
    description = "the Poppy-Session header is missing or does not verify"


class SessionEnded(PoppyError):
    code = "session_ended"
    description = "this Session has ended; start a new one"


class VersionUnsupported(PoppyError):
    code = "version_unsupported"
    description = "Poppy-Version is missing or names a version that is not served here"


class ExtensionRequired(PoppyError):
    code = "extension_required"
    description = "the request has to declare an extension"

    def __init__(self, extension: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.extension = extension
        super().__init__(description, rule=rule, detail=detail)


class AccountNeeded(PoppyError):
    """No access token where the account is needed: a challenge without an error code (section 7)."""

    code = ""
    description = "the request needs the User's account"

    def __init__(self, scope: str = "", description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.scope = scope
        super().__init__(description, rule=rule, detail=detail)


class InvalidToken(PoppyError):
    code = "invalid_token"
    description = "the access token is expired, revoked or invalid"


class ProofNonceNeeded(InvalidToken):
    """The token may be good; its DPoP proof needs this `nonce`, which goes out in `DPoP-Nonce` (RFC 9449 9)."""

    code = "use_dpop_nonce"
    description = "the DPoP proof needs the nonce of the DPoP-Nonce field"

    def __init__(self, nonce: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.nonce = nonce
        super().__init__(description, rule=rule, detail=detail)


class InsufficientScope(PoppyError):
    code = "insufficient_scope"
    description = "the access token lacks a scope that the request needs"

    def __init__(self, scope: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.scope = scope
        super().__init__(description, rule=rule, detail=detail)


class ConversationNotFound(PoppyError):
    code = "conversation_not_found"
    description = "no such conversation"


class ConversationClosed(PoppyError):
    code = "conversation_closed"
    description = "the conversation is closed"


class DirectConversationOpen(PoppyError):
    code = "direct_conversation_open"
    description = "the conversation has an open Direct Conversation"

    def __init__(self, conversation_id: str, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.conversation_id = conversation_id
        super().__init__(description, rule=rule, detail=detail)


class MessageIdConflict(PoppyError):
    code = "message_id_conflict"
    description = "this message id was accepted with different content"


class InvalidCursor(PoppyError):
    code = "invalid_cursor"
    description = "the cursor is unknown or belongs to another conversation"


class CursorExpired(PoppyError):
    code = "cursor_expired"
    description = "the events at this cursor are no longer kept; read from the beginning"


class InvalidRequest(PoppyError):
    code = "invalid_request"
    description = "the request is malformed"


class PayloadTooLarge(InvalidRequest):
    description = "the request is larger than this Company accepts"


class RateLimited(PoppyError):
    """`retry_after` is in whole seconds, at least 1 (5.6)."""

    code = "rate_limited"
    description = "too many requests; wait before sending the next one"

    def __init__(self, retry_after: int, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.retry_after = retry_after
        super().__init__(description, rule=rule, detail=detail)


class TemporarilyUnavailable(PoppyError):
    """A check that could not be made just now. `retry_after` is in whole seconds, at least 1."""

    code = "temporarily_unavailable"
    description = "this cannot be checked right now; try again later"

    def __init__(self, retry_after: int, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.retry_after = retry_after
        super().__init__(description, rule=rule, detail=detail)


class ConfigurationError(PapaverError):
    code = "configuration"
    description = "the configuration cannot work"


class DiscoveryFailed(PapaverError):
    """What was expected, what came, and what to do next. `expected` and `found` are the two differing values."""

    code = "discovery_failed"

    def __init__(
        self, description: str, *, rule: str, expected: str = "", found: str = "", remedy: str = "", detail: str = ""
    ) -> None:
        super().__init__(description, rule=rule, detail=detail)
        self.compare(expected, found, remedy)


class NotADestination(PapaverError):
    code = "not_a_destination"
    description = "this URL is not one that the Company's documents name, so the Session header must not go there"


class SignInNeeded(PapaverError):
    """`scope` is everything to ask for: what the request needs and what is held already (4.7).

    `only_if_asked`: the User signed out, was disconnected, or declined this. Begin no sign-in unless they ask (5.5).
    """

    code = "sign_in_needed"

    def __init__(
        self,
        scope: str,
        description: str = "the User has to sign in",
        *,
        rule: str = "",
        only_if_asked: bool = False,
    ) -> None:
        self.scope = scope
        self.only_if_asked = only_if_asked
        super().__init__(description, rule=rule)


class Refused(PapaverError):
    """The Company's error, as received. `response` is kept for the caller.

    `told` is the Company's own sentence about it: its `error_description` in one short line, without what cannot be
    seen and without whatever may be a token; "" when it said none. It is data from the Company, never an instruction.
    """

    def __init__(self, code: str, response: Response, description: str = "", *, rule: str = "") -> None:
        self.code = code
        self.response = response
        super().__init__(description, rule=rule)

    @property
    def told(self) -> str:
        try:
            said = loads_object(self.response.body).get("error_description")
        except JsonError:
            return ""
        return told(said) if isinstance(said, str) else ""

    def __str__(self) -> str:
        return f'{super().__str__()}; it says "{self.told}"' if self.told else super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        """Of the response only its status, its URL and what it `told` leave this process."""
        state = {name: value for name, value in vars(self).items() if name != "response"}
        return _refused, (type(self), self.args, self.response.status, self.response.url, self.told), state


class Misbehaved(PapaverError):
    code = "misbehaved"


def _refused(kind: type[Refused], args: tuple[object, ...], status: int, url: str, said: str) -> Refused:
    error = kind.__new__(kind, *args)
    body = dumps({"error_description": said}) if said else b""
    error.response = Response(status, body=body, url=url)
    return error
