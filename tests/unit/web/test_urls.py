"""URLs are read strictly, compared by host and normalised in one place (3, 3.1, 3.2, 5.2; readings 13, 28, 44, 53)."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from papaver.web.urls import (
    Url,
    UrlError,
    authorization_server_metadata_url,
    check_https,
    host_of,
    host_within,
    htu,
    join,
    origin_of,
    poppy_json_url,
    protected_resource_metadata_url,
    read_domain,
    read_url,
    resolve,
    same_host,
)

PLAINLY_WRONG = """
    https:// https:///path https:a.example a.example/path //a.example/ /path ftp://a.example/ ws://a.example/
    javascript:alert(1) https://user@a.example/ https://user:pass@a.example/ https://@a.example/ https://a.example/<
    https://a.example./ https://.a.example/ https://a..example/ https://-a.example/ https://a-.example/
    https://a%2eexample/ https://a.example:0/ https://a.example:65536/ https://a.example:443a/ https://a.example:-1/
    https://a.example:123456/ https://a.example:1:2/ https://127.1/ https://2130706433/ https://0x7f000001/
    https://0x7f.0.0.1/ https://0177.0.0.1/ https://256.0.0.1/ https://1.2.3/ https://1.2.3.4.5/ https://[::1/
    https://[::g]/ https://[:::]/ https://[fe80::1%25eth0]/ https://[v1.a]/ https://::1/ https://a.example/%
    https://a.example/%2 https://a.example/%zz https://a.example/#a#b
"""
REFUSED = [
    *PLAINLY_WRONG.split(),
    "",
    "https://a.example\\@b.example/",
    "https://a.example\\b",
    "https:\\\\a.example",
    "https://a.example/a b",
    " https://a.example/",
    "https://a.example/ ",
    "https://a.example/\t",
    "https://a.example/\n",
    "https://a.exam\nple/",
    "https://a.example/\x00",
    "https://a.example/\x7f",
    "https://a.example/é",
    "https://é.example/",
    'https://a.example/"',
    "https://\u212a.example/",
    "https://a.example/" + "x" * 8192,
    "https://" + ".".join(["x" * 60] * 5) + "/",
    "https://" + "x" * 64 + ".example/",
]


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_not_a_clean_absolute_url_is_refused(url: str) -> None:
    """By every function that reads one, with its own error."""
    for read in (read_url, check_https, host_of, origin_of, htu):
        with pytest.raises(UrlError) as caught:
            read(url)
        assert caught.value.code == "invalid_url"


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://a.example", Url("https", "a.example", None, "", None, None)),
        ("HTTPS://A.Example:443/", Url("https", "a.example", None, "/", None, None)),
        ("https://a.example:/", Url("https", "a.example", None, "/", None, None)),
        ("https://a.example:8443/x?y=1&z=%#f", Url("https", "a.example", 8443, "/x", "y=1&z=%", "f")),
        ("https://a.example?", Url("https", "a.example", None, "", "", None)),
        ("https://a.example/#", Url("https", "a.example", None, "/", None, "")),
        ("https://a.example/#a?b", Url("https", "a.example", None, "/", None, "a?b")),
        ("http://localhost:80/a%2Fb//c/", Url("http", "localhost", None, "/a%2Fb//c/", None, None)),
        ("http://127.0.0.1:53211/cb", Url("http", "127.0.0.1", 53211, "/cb", None, None)),
        ("https://[2001:DB8:0:0::1]:444/", Url("https", "[2001:db8::1]", 444, "/", None, None)),
        (
            "https://x_y.xn--bcher-kva.example/~a/{b}|[c]",
            Url("https", "x_y.xn--bcher-kva.example", None, "/~a/{b}|[c]", None, None),
        ),
        ("https://3com.4u.example/", Url("https", "3com.4u.example", None, "/", None, None)),
    ],
)
def test_the_parts_of_a_url(url: str, parts: Url) -> None:
    """Scheme and host are lowercase, a default port is None, the rest is as written."""
    assert read_url(url) == parts
    assert host_of(url) == parts.host


def test_an_origin_names_a_port_only_where_it_is_not_the_schemes_own() -> None:
    """The form that browsers send."""
    assert origin_of("HTTPS://A.example:443/x?y#z") == "https://a.example"
    assert origin_of("https://a.example:80/") == "https://a.example:80"
    assert origin_of("http://[::1]:8080/x") == "http://[::1]:8080"


def test_only_https_passes() -> None:
    """Section 3: http is refused by its rule, loopback too."""
    check_https("https://a.example/x")
    check_https("HTTPS://a.example")
    for url in ("http://a.example/", "http://127.0.0.1/"):
        with pytest.raises(UrlError) as caught:
            check_https(url)
        assert caught.value.rule == "web.https-only"


def test_hosts_are_compared_ignoring_case_and_port() -> None:
    """Readings 27: no public suffixes, no subdomains."""
    assert same_host("https://A.example:8443/x", "https://a.EXAMPLE/y")
    assert not same_host("https://a.example/", "https://b.a.example/")
    assert not same_host("https://a.example/", "https://a.example.evil.test/")


def test_a_host_is_within_a_domain_on_label_boundaries() -> None:
    """Readings 58."""
    assert host_within("a.Example", "A.example")
    assert host_within("x.y.a.example", "a.example")
    assert not host_within("xa.example", "a.example")
    assert not host_within("a.example", "x.a.example")
    assert not host_within("a.example.", "")


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("example.com", "example.com"),
        ("Shop.Example", "shop.example"),
        ("localhost", "localhost"),
        ("3com.example", "3com.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a-b.example", "a-b.example"),
        (".".join(["x" * 63] * 3 + ["y" * 61]), ".".join(["x" * 63] * 3 + ["y" * 61])),
    ],
)
def test_a_domain_is_a_bare_host_name_in_lowercase(text: str, domain: str) -> None:
    """Readings 13 and 53."""
    assert read_domain(text) == domain


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "example.com.",
        ".example.com",
        "a..example",
        "example.com:443",
        "https://example.com",
        "example.com/",
        "127.0.0.1",
        "1",
        "a.1",
        "[::1]",
        "::1",
        "bücher.example",
        "\u212aelvin.example",
        "a b.example",
        "a.example\n",
        "user@a.example",
        "-a.example",
        "a-.example",
        "a_b.example",
        "*.example",
        "x" * 64 + ".example",
        ".".join(["x" * 63] * 3 + ["y" * 62]),
    ],
)
def test_other_domains_are_refused(text: str) -> None:
    """Ports, addresses, trailing dots, U-labels, wildcards, and labels that DNS cannot hold."""
    with pytest.raises(UrlError):
        read_domain(text)


NORMAL = [
    ("https://api.example.com/poppy/messages", "https://api.example.com/poppy/messages"),
    ("https://a.example", "https://a.example/"),
    ("https://a.example/", "https://a.example/"),
    ("HTTPS://A.Example:443/X", "https://a.example/X"),
    ("https://a.example:/x", "https://a.example/x"),
    ("https://a.example:0443/x", "https://a.example/x"),
    ("https://a.example:8443/x", "https://a.example:8443/x"),
    ("http://a.example:80/x", "http://a.example/x"),
    ("http://a.example:443/x", "http://a.example:443/x"),
    ("https://a.example/x?cursor=1", "https://a.example/x"),
    ("https://a.example?x", "https://a.example/"),
    ("https://a.example/x#f", "https://a.example/x"),
    ("https://a.example/x/", "https://a.example/x/"),
    ("https://a.example//x", "https://a.example//x"),
    ("https://a.example/%7Eb/%7eb", "https://a.example/~b/~b"),
    ("https://a.example/%41%2d%5f%2E", "https://a.example/A-_."),
    ("https://a.example/a%2fb%3A", "https://a.example/a%2Fb%3A"),
    ("https://a.example/%2541", "https://a.example/%2541"),
    ("https://a.example/%C3%a9", "https://a.example/%C3%A9"),
    ("https://a.example/a/./b/../c", "https://a.example/a/c"),
    ("https://a.example/a/%2e%2E/b", "https://a.example/b"),
    ("https://a.example/../../x", "https://a.example/x"),
    ("https://a.example/a/..", "https://a.example/"),
    ("https://a.example/a/.", "https://a.example/a/"),
    ("https://a.example/..//x", "https://a.example//x"),
    ("https://a.example/.well-known/x", "https://a.example/.well-known/x"),
    ("https://a.example/...", "https://a.example/..."),
    ("https://[2001:db8::0:1]/x", "https://[2001:db8::1]/x"),
    ("https://" + "x" * 60 + ".example/" + "y" * 300, "https://" + "x" * 60 + ".example/" + "y" * 300),
]


@pytest.mark.parametrize(("url", "normal"), NORMAL)
def test_htu_is_the_rfc_3986_normal_form_without_query_and_fragment(url: str, normal: str) -> None:
    """Readings 28: the equivalences, and that nothing else is folded."""
    assert htu(url) == normal


SEGMENTS = st.sampled_from(
    ["", ".", "..", "a", "A", "%7e", "%2e", "%2E%2e", "%2f", "%25", "%2541", "~", "|", "[x]", "..."]
)
HOSTS = st.sampled_from(["a.example", "A.EXAMPLE", "xn--a.example", "[::1]", "[0:0::1]", "127.0.0.1", "localhost"])


def spell(scheme: str, host: str, port: str, path: list[str], tail: str) -> str:
    return f"{scheme}://{host}{port}{''.join(f'/{segment}' for segment in path)}{tail}"


ODD_URLS = st.builds(
    spell,
    st.sampled_from(["https", "HTTPS", "http", "HtTp"]),
    HOSTS,
    st.sampled_from(["", ":", ":443", ":0443", ":80", ":8443"]),
    st.lists(SEGMENTS, max_size=6),
    st.sampled_from(["", "?", "?a=/../b", "#", "?x#y", "#/../?"]),
)


@given(ODD_URLS)
@example("https://a.example/%2%45")
def test_b26_htu_is_idempotent_over_odd_urls(url: str) -> None:
    """The normal form is its own normal form, so it does not matter how often and on which side it is made."""
    try:
        normal = htu(url)
    except UrlError:
        return
    assert htu(normal) == normal
    assert read_url(normal).query is None
    assert read_url(normal).fragment is None


@given(ODD_URLS, st.sampled_from(["scheme", "port", "escape", "query"]))
def test_b26_one_function_makes_both_sides_of_the_comparison_equal(url: str, change: str) -> None:
    """A request's URL that is written differently on the wire, but equivalently, has the same `htu`."""
    parts = read_url(url)
    path, port = parts.path, parts.port
    written = url.partition("#")[0].partition("?")[0]
    if change == "scheme":
        other = written[:5].swapcase() + written[5:]
    elif change == "port":
        assume(port is None)
        default = ":443" if parts.scheme == "https" else ":80"
        other = f"{parts.scheme}://{parts.host}{default}{path}"
    elif change == "escape":
        other = parts.origin + path.replace("a", "%61").replace("~", "%7E")
    else:
        other = written + "?cursor=x#y"
    assert htu(other) == htu(url)


@given(st.text(max_size=40))
def test_htu_raises_nothing_but_its_own_error(text: str) -> None:
    """Whatever a claim holds."""
    for url in (text, f"https://{text}", f"https://a.example/{text}"):
        try:
            htu(url)
        except UrlError:
            continue


@pytest.mark.parametrize(
    ("issuer", "url"),
    [
        ("https://auth.example", "https://auth.example/.well-known/oauth-authorization-server"),
        ("https://auth.example/", "https://auth.example/.well-known/oauth-authorization-server"),
        ("https://auth.example/t1", "https://auth.example/.well-known/oauth-authorization-server/t1"),
        ("https://auth.example:8443/a/b/", "https://auth.example:8443/.well-known/oauth-authorization-server/a/b"),
    ],
)
def test_an_issuers_metadata_is_between_host_and_path(issuer: str, url: str) -> None:
    """RFC 8414 3.1, B35."""
    assert authorization_server_metadata_url(issuer) == url


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
        ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
        ("https://A.example/mcp", "https://A.example/.well-known/oauth-protected-resource/mcp"),
        ("https://a.example/mcp/", "https://a.example/.well-known/oauth-protected-resource/mcp/"),
        ("https://a.example/x?k=v", "https://a.example/.well-known/oauth-protected-resource/x?k=v"),
        ("https://a.example?k", "https://a.example/.well-known/oauth-protected-resource?k"),
        ("https://a.example/?", "https://a.example/.well-known/oauth-protected-resource?"),
    ],
)
def test_b35_a_resources_metadata_is_between_host_and_path(resource: str, url: str) -> None:
    """RFC 9728 3.1: never appended after the path, never doubled; nothing is normalised."""
    assert protected_resource_metadata_url(resource) == url


def test_identifiers_with_a_fragment_or_without_https_have_no_metadata() -> None:
    """And an issuer has no query."""
    for url in ("http://a.example", "https://a.example/#x", "https://a.example#"):
        with pytest.raises(UrlError):
            authorization_server_metadata_url(url)
        with pytest.raises(UrlError):
            protected_resource_metadata_url(url)
    with pytest.raises(UrlError):
        authorization_server_metadata_url("https://a.example/?")


def test_the_poppy_json_of_a_domain() -> None:
    """Section 3."""
    assert poppy_json_url("Example.COM") == "https://example.com/.well-known/poppy.json"
    with pytest.raises(UrlError):
        poppy_json_url("example.com/x")


def test_joining_changes_no_character() -> None:
    """Readings 44."""
    assert join("https://a.example/v1", "/conversations") == "https://a.example/v1/conversations"
    assert join("https://a.example/v1/", "/c") == "https://a.example/v1//c"


# reference>target, the target without its "http://"
RFC_3986_5_4 = """
    g>a/b/c/g ./g>a/b/c/g g/>a/b/c/g/ /g>a/g //g>g ?y>a/b/c/d;p?y g?y>a/b/c/g?y #s>a/b/c/d;p?q#s g#s>a/b/c/g#s
    g?y#s>a/b/c/g?y#s ;x>a/b/c/;x g;x>a/b/c/g;x >a/b/c/d;p?q .>a/b/c/ ./>a/b/c/ ..>a/b/ ../>a/b/ ../g>a/b/g ../..>a/
    ../../>a/ ../../g>a/g ../../../g>a/g ../../../../g>a/g /./g>a/g /../g>a/g g.>a/b/c/g. .g>a/b/c/.g g..>a/b/c/g..
    ..g>a/b/c/..g ./../g>a/b/g ./g/.>a/b/c/g/ g/./h>a/b/c/g/h g/../h>a/b/c/h g;x=1/./y>a/b/c/g;x=1/y
    g;x=1/../y>a/b/c/y g?y/./x>a/b/c/g?y/./x g?y/../x>a/b/c/g?y/../x g#s/./x>a/b/c/g#s/./x g#s/../x>a/b/c/g#s/../x
"""


@pytest.mark.parametrize("row", RFC_3986_5_4.split())
def test_references_resolve_as_rfc_3986_5_4_says(row: str) -> None:
    """Its normal and abnormal examples, but those with another scheme."""
    reference, target = row.split(">")
    assert resolve("http://a/b/c/d;p?q", reference) == f"http://{target}"


@pytest.mark.parametrize(
    ("base", "reference", "target"),
    [
        ("https://a.example", "x", "https://a.example/x"),
        ("https://a.example", "#x", "https://a.example#x"),
        ("https://a.example", "?x", "https://a.example?x"),
        ("https://a.example/x", "HTTPS://B.example/y/../z", "HTTPS://B.example/z"),
        ("https://a.example/x", "http://b.example", "http://b.example"),
        ("https://a.example/.well-known/poppy.json", "/skills/a/SKILL.md", "https://a.example/skills/a/SKILL.md"),
        ("https://a.example/.well-known/poppy.json", "skills/a", "https://a.example/.well-known/skills/a"),
    ],
)
def test_references_resolve_beside_an_https_base(base: str, reference: str, target: str) -> None:
    """The result may be http: whether that is acceptable is the caller's rule."""
    assert resolve(base, reference) == target


@pytest.mark.parametrize(
    "reference",
    [
        "g:h",
        "javascript:alert(1)",
        "data:text/html,x",
        "http:g",
        "https:///x",
        "//",
        "//user@b.example/",
        "/\\b.example",
        "\\\\b.example",
        " /x",
        "/x\n",
        "/\té",
        "%zz",
        "a:1",
    ],
)
def test_references_that_lead_elsewhere_are_refused(reference: str) -> None:
    """Other schemes, userinfo, an empty authority, and what a browser would repair."""
    with pytest.raises(UrlError):
        resolve("https://a.example/x", reference)


def test_a_reference_is_not_resolved_beside_a_bad_base() -> None:
    """The base is a URL too."""
    with pytest.raises(UrlError):
        resolve("a.example", "https://b.example/")


@pytest.mark.parametrize("text", ["shop.example", "shop.example/agent.json", "ftp://shop.example/", ""])
def test_a_text_without_its_scheme_is_told_how_to_begin(text: str) -> None:
    """What a person forgets first."""
    with pytest.raises(UrlError) as caught:
        read_url(text)
    assert caught.value.description == "the URL has to begin with https://"
