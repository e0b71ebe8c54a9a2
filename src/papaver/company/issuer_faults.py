"""What the metadata of an external issuer lacks or says otherwise, before any Personal Agent finds out (3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from papaver.oauth.metadata import fold_host, missing_members
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule

__all__ = ["check_issuer_complete", "check_issuer_lists", "check_issuer_named", "issuer_faults"]

Document = Mapping[str, object]
AT_ISSUER = "add it to the issuer's metadata; or let ExternalIssuer(…, publish_metadata=True, metadata=…) serve it"


def issuer_faults(document: Document, issuer: str, resources: Sequence[str]) -> tuple[ConfigurationError, ...]:
    """Every fault of what a Personal Agent would be given, with both values and the remedy.

    `resources`  what `protected_resources` has to list: each domain, and each service with tokens of its own
    """
    faults: list[ConfigurationError] = []
    try:
        check_issuer_named(document, issuer)
    except ConfigurationError as error:
        faults.append(error)
    for member, clause in missing_members(document):
        try:
            check_issuer_complete(member, clause)
        except ConfigurationError as error:
            faults.append(error)
    for resource in resources if "protected_resources" in document else ():
        try:
            check_issuer_lists(document, resource)
        except ConfigurationError as error:
            faults.append(error)
    return tuple(faults)


@rule("issuer.named-exactly")
def check_issuer_named(document: Document, issuer: str) -> None:
    """3.2, RFC 8414 3.3: the metadata's `issuer` is the one that the Company names, character for character."""
    found = document.get("issuer")
    if found is not None and found != issuer:
        slash = isinstance(found, str) and found.rstrip("/") == issuer.rstrip("/")
        raise _differs(
            "issuer.named-exactly",
            "the metadata is of another issuer" + (", which differs by the slash at its end" if slash else ""),
            issuer,
            str(found),
            "write the issuer in ExternalIssuer(…) exactly as its metadata has it",
        )


@rule("issuer.metadata-complete")
def check_issuer_complete(member: str, clause: str) -> None:
    """3.2: the member is there. Called for each that is not."""
    raise _differs(
        "issuer.metadata-complete", f"the issuer's metadata lacks {member} ({clause})", member, "(none)", AT_ISSUER
    )


@rule("issuer.lists-resource")
def check_issuer_lists(document: Document, resource: str) -> None:
    """3.2, RFC 9728 4: `protected_resources` lists the domain's URL, or the service's, but for the case of its host."""
    listed = document.get("protected_resources")
    found = [str(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []
    if all(fold_host(one) != fold_host(resource) for one in found):
        raise _differs(
            "issuer.lists-resource",
            f"protected_resources does not list {resource} (3.2, RFC 9728 4)",
            resource,
            ", ".join(found) or "(none)",
            AT_ISSUER,
        )


def _differs(rule_id: str, sentence: str, expected: str, found: str, remedy: str) -> ConfigurationError:
    error = ConfigurationError(sentence, rule=rule_id)
    error.compare(expected, found, remedy)
    return error
