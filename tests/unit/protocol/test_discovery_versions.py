"""Discovery chooses a version, and every version is of one Company (3.4)."""

from __future__ import annotations

import pytest

from papaver.protocol.dialect import Version
from papaver.protocol.discovery import (
    Checks,
    Choice,
    choose_version,
    read_poppy_json,
)
from papaver.web.messages import Response
from tests.unit.protocol.discovering import (
    DOCUMENT,
    ISSUER,
    POPPY,
    RESOURCE,
    V0_3_AT,
    Answers,
    answer,
    answers,
    discover,
    refused,
)


@pytest.mark.requirement("3.1-01")
@pytest.mark.parametrize("version", [None, 0.4, "0.4.0", "4", ["0.4"]])
def test_a_document_that_does_not_say_its_version_is_refused(version: object) -> None:
    """3.1."""
    assert refused(answers({**DOCUMENT, "protocol_version": version})).rule == "document.protocol-version"


@pytest.mark.requirement("3.1-02", "3.4-11")
@pytest.mark.parametrize("version", ["0.5", "0.3", "1.0", "0.9"])
def test_no_document_of_an_incompatible_version_is_used(version: str) -> None:
    """Both sides' versions are shown (3.4)."""
    error = refused(answers({**DOCUMENT, "protocol_version": version}))
    assert (error.rule, error.expected, error.found) == ("version.newest-compatible", "0.4", version)


def served_versions(top: str, **others: object) -> Answers:
    """A Company that lists other versions: name → URL, written with an underscore."""
    listed = {name.removeprefix("v").replace("_", "."): url for name, url in others.items()}
    return answers({**DOCUMENT, "protocol_version": top, "supported_versions": listed})


@pytest.mark.requirement("3.4-10", "3.4-05")
def test_the_newest_compatible_version_is_chosen_and_its_own_document_used() -> None:
    """From another path of the same host (3.4)."""
    web = served_versions("0.5", v0_3=V0_3_AT, v0_4="https://example.com/any/path?x=1")
    web["https://example.com/any/path?x=1"] = answer(DOCUMENT)
    company = discover(web, implemented=(Version(0, 3), Version(0, 4)))
    assert company.document.protocol_version == Version(0, 4)
    assert (company.version, company.url) == (Version(0, 4), POPPY)


@pytest.mark.requirement("3.1-03", "3.4-26")
def test_from_1_0_a_newer_minor_version_is_used_by_an_older_personal_agent() -> None:
    """It speaks its own version (3.1, 3.4)."""
    served = read_poppy_json(answer({**DOCUMENT, "protocol_version": "1.3", "new": {}}, POPPY), Checks())
    assert choose_version(served, (Version(0, 4), Version(1, 0)), Checks()) == Choice(
        Version(1, 3), Version(1, 0), None
    )


@pytest.mark.requirement("3.4-03")
@pytest.mark.parametrize("status", [301, 302, 307, 404, 500])
def test_a_version_whose_document_redirects_or_is_missing_is_not_used(status: int) -> None:
    """The next best is; without one, none is (3.4)."""
    web = {**served_versions("0.4", v0_5="https://example.com/0.5.json"), V0_3_AT: Response(status)}
    web["https://example.com/0.5.json"] = Response(status)
    assert discover(web, implemented=(Version(0, 4), Version(0, 5))).version == Version(0, 4)
    assert refused(web, implemented=(Version(0, 5),)).rule == "version.newest-compatible"


@pytest.mark.requirement("3.4-02")
@pytest.mark.parametrize(
    "url", ["http://example.com/0.3.json", "https://api.example.com/0.3.json", "https://b.example/0.3.json", 7, None]
)
def test_a_version_on_another_host_is_left_out(url: object) -> None:
    """And is told (3.4)."""
    checks = Checks()
    served = read_poppy_json(served_versions("0.4", v0_3=url)[POPPY], checks)
    assert served.supported_versions == ()
    assert [made.rule for made in checks.made if not made.ok] == ["version.url-on-host"]


def test_a_version_with_an_odd_name_is_left_out() -> None:
    """It names no version."""
    served = read_poppy_json(served_versions("0.4", latest=V0_3_AT, v0_3=V0_3_AT)[POPPY], Checks())
    assert served.supported_versions == ((Version(0, 3), V0_3_AT),)


def test_versions_that_are_no_object_are_none() -> None:
    """A wrong type offers nothing (3.4)."""
    served = read_poppy_json(answer({**DOCUMENT, "supported_versions": ["0.3"], "organization": 5}, POPPY), Checks())
    assert (served.supported_versions, served.domain) == ((), None)


def test_poppy_json_itself_is_the_document_of_its_own_version() -> None:
    """Even when it lists another URL for it."""
    served = read_poppy_json(served_versions("0.4", v0_4=V0_3_AT)[POPPY], Checks())
    assert choose_version(served, (Version(0, 4),), Checks()).url is None


def version_0_3(**members: object) -> Answers:
    """A Company whose only document for us is that of version 0.3."""
    document = {**DOCUMENT, "protocol_version": "0.3", **members}
    return {**served_versions("0.5", v0_3=V0_3_AT), V0_3_AT: answer(document)}


@pytest.mark.requirement("3.4-04")
@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"protocol_version": "0.2"}, "version.as-listed"),
        ({"protocol_version": None}, "version.as-listed"),
        ({"supported_versions": {"0.2": V0_3_AT}}, "version.no-further-versions"),
        ({"supported_versions": {}}, "version.no-further-versions"),
    ],
)
def test_a_version_document_is_of_the_version_it_is_listed_under(members: dict[str, object], rule: str) -> None:
    """And lists no versions itself (3.4)."""
    assert refused(version_0_3(**members), implemented=(Version(0, 3),)).rule == rule


def test_a_version_document_that_is_no_json_is_refused() -> None:
    """It was served, so it is not just unavailable."""
    web = {**version_0_3(), V0_3_AT: Response(200, body=b"<html>")}
    assert refused(web, implemented=(Version(0, 3),)).rule == "version.document-json"


@pytest.mark.requirement("3.4-06")
def test_a_version_document_of_another_domain_is_refused() -> None:
    """One domain in all documents (3.4)."""
    web = version_0_3(organization={"name": "X", "domain": "b.example"})
    assert refused(web, implemented=(Version(0, 3),)).rule == "discovery.domain-is-host"
    top = {**DOCUMENT, "protocol_version": "0.5", "supported_versions": {"0.3": V0_3_AT}}
    web = {**version_0_3(), POPPY: answer({**top, "organization": {"domain": "b.example"}}, POPPY)}
    assert refused(web, implemented=(Version(0, 3),)).rule == "version.same-domain"


@pytest.mark.requirement("3.4-07")
def test_a_version_document_that_selects_another_issuer_is_refused() -> None:
    """A new version does not change who the Company is (3.4)."""
    other = "https://other.example"
    top = {**DOCUMENT, "protocol_version": "0.5", "supported_versions": {"0.3": V0_3_AT}, "auth": {"issuer": other}}
    resource = {"resource": "https://example.com", "authorization_servers": [ISSUER, other]}
    web = {**answers(top, resource), V0_3_AT: version_0_3(auth={"issuer": ISSUER})[V0_3_AT]}
    assert refused(web, implemented=(Version(0, 3),)).rule == "version.same-issuer"
    web[RESOURCE] = Response(404)
    web[V0_3_AT] = version_0_3()[V0_3_AT]
    assert refused(web, implemented=(Version(0, 3),)).rule == "version.same-issuer"


@pytest.mark.requirement("3.4-08")
def test_other_fields_may_differ_by_version() -> None:
    """The chosen document's are used (3.4)."""
    web = version_0_3(feedback={"endpoint": "https://example.com/old"})
    assert discover(web, implemented=(Version(0, 3),)).document.feedback == "https://example.com/old"
