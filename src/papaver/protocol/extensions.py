"""Extensions: what a Company advertises, what a request declares, and what is in force for it (3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from papaver.protocol.company import ExtensionEntry
from papaver.protocol.errors import ExtensionRequired
from papaver.values.rules import rule
from papaver.web.fields import FieldError
from papaver.web.fields import read_extensions as read_field
from papaver.web.fields import write_extensions as write_field

__all__ = [
    "EXTENSIONS_HEADER",
    "check_extension_declared",
    "choose_extensions",
    "in_force",
    "read_extensions",
    "write_extensions",
]

EXTENSIONS_HEADER: Final = "poppy-extensions"


def read_extensions(values: Sequence[str]) -> Mapping[str, str]:
    """Name → version, as a request declares them. `values` are its `Poppy-Extensions` fields.

    Without a field, or when it does not parse, nothing is declared (3.4); a single item that is no String with a
    String `v` is left out, and of two with one name the first counts (readings 46). Never raises.
    """
    if not values:
        return {}
    try:
        return dict(read_field(values))
    except FieldError:
        return {}


def write_extensions(declared: Mapping[str, str]) -> str | None:
    """The value of `Poppy-Extensions`, in the mapping's order; None when nothing is declared and no field is sent.

    Raises `FieldError` for a name or version that is not visible ASCII.
    """
    return write_field(declared.items()) or None


def in_force(declared: Mapping[str, str], advertised: Mapping[str, Iterable[ExtensionEntry]]) -> Mapping[str, str]:
    """Declared ∩ advertised: what the Company lists in the very version that is declared. The rest is ignored."""
    return {
        name: version
        for name, version in declared.items()
        if any(entry.version == version for entry in advertised.get(name, ()))
    }


def choose_extensions(
    supported: Mapping[str, Sequence[str]],
    advertised: Mapping[str, Iterable[ExtensionEntry]],
    evident: Collection[str] = (),
) -> Mapping[str, str]:
    """What a Personal Agent declares at a Company: of each extension one version that both have (3.3).

    `supported` lists, for each extension, the versions that the Personal Agent implements, the preferred one first.
    `evident` names extensions that the Company recognises from the request itself; they are not declared.
    """
    chosen: dict[str, str] = {}
    for name, versions in supported.items():
        listed = {entry.version for entry in advertised.get(name, ())}
        version = next((version for version in versions if version in listed), None)
        if version is not None and name not in evident:
            chosen[name] = version
    return chosen


@rule("extension.declared")
def check_extension_declared(name: str, active: Mapping[str, str]) -> None:
    """3.3: refuse what is handled only with this extension, unless it is in force for the request.

    For the Company's choice to require one; where the request itself uses the extension, it is not asked.
    """
    if name not in active:
        raise ExtensionRequired(name, rule="extension.declared")
