"""An address is public, or the special use that makes it not so is named (readings 52, C61)."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.web.addresses import is_public, why_refused

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:200::1",
    "2a00:1450:4001::1",
    "3ffe:ffff::1",
]
REFUSED = {
    "0.0.0.0": "this network",
    "0.1.2.3": "this network",
    "10.0.0.1": "private use",
    "100.64.0.1": "CGNAT",
    "100.127.255.255": "CGNAT",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private use",
    "172.31.255.255": "private use",
    "192.0.0.8": "protocol assignments",
    "192.0.0.9": "protocol assignments",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4 relays",
    "192.168.0.10": "private use",
    "198.18.0.1": "benchmarking",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "100::1": "discard",
    "100:0:0:1::1": "dummy",
    "2001:2::1": "benchmarking",
    "2001:10::1": "ORCHID",
    "2001:20::1": "ORCHID",
    "2001:30::1": "drone",
    "2001:1::1": "protocol assignments",
    "2001:1ff::1": "protocol assignments",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "5f00::1": "segment routing",
    "fc00::1": "unique local",
    "fd12:3456::1": "unique local",
    "fe80::1": "link-local",
    "febf::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "4000::1": "not given out",
    "1::1": "not given out",
}
FORMS_OF_IPV4 = {
    "::ffff:127.0.0.1": "IPv4-mapped form of loopback",
    "::ffff:10.0.0.1": "IPv4-mapped form of private use",
    "::ffff:169.254.169.254": "IPv4-mapped form of link-local",
    "::ffff:a9fe:a9fe": "IPv4-mapped form of link-local",
    "::127.0.0.1": "IPv4-compatible",
    "::8.8.8.8": "IPv4-compatible",
    "::ffff:0:127.0.0.1": "IPv4-translated",
    "64:ff9b::7f00:1": "NAT64 form of loopback",
    "64:ff9b::a00:1": "NAT64 form of private use",
    "64:ff9b:1::1": "local NAT64",
    "64:ff9b:1::808:808": "local NAT64",
    "2002:7f00:1::": "6to4",
    "2002:a00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
}


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_and_the_neighbours_of_special_blocks_pass(text: str) -> None:
    """The edges of the blocks are where they should be."""
    assert why_refused(text) is None
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(("text", "use"), REFUSED.items())
def test_special_uses_are_refused_by_name(text: str, use: str) -> None:
    """The reason names the block."""
    reason = why_refused(text)
    assert reason is not None
    assert use in reason
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(("text", "reason"), FORMS_OF_IPV4.items())
def test_c61_ipv6_forms_of_an_ipv4_address_are_seen_through(text: str, reason: str) -> None:
    """Mapped and NAT64 forms are judged by the address inside, the others are refused as such."""
    assert (why_refused(text) or "").startswith(reason)


@pytest.mark.parametrize("text", ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_c61_forms_that_sockets_hand_out_stay_usable(text: str) -> None:
    """A dual-stack socket reports its IPv4 peer as mapped, a DNS64 network answers in NAT64 form."""
    assert is_public(text)


@given(st.ip_addresses(v=4))
def test_c61_mapped_and_nat64_forms_are_as_public_as_the_address_inside(address: ipaddress.IPv4Address) -> None:
    """For every IPv4 address, each form gets the same verdict."""
    for prefix in ("::ffff:", "64:ff9b::"):
        assert is_public(f"{prefix}{address}") == is_public(address)
    for prefix in ("::", "64:ff9b:1::", "::ffff:0:"):
        assert not is_public(f"{prefix}{address}")


@given(st.ip_addresses())
def test_nothing_is_public_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """Ours is the narrower table. (Where the library looks through a form, the address inside is compared.)"""
    if is_public(address) and address not in ipaddress.ip_network(
        "64:ff9b::/96" if address.version == 6 else "0.0.0.0/32"
    ):
        assert not address.is_private
        assert not address.is_multicast


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1111%1", "::1%lo"])
def test_an_address_with_a_scope_is_refused(text: str) -> None:
    """A scope means one of our own interfaces."""
    assert why_refused(text) == "scoped to one interface"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "127.1",
        "0177.0.0.1",
        "010.0.0.1",
        "2130706433",
        "0x7f000001",
        "8.8.8.8:53",
        "[::1]",
        "8.8.8.8 ",
    ],
)
def test_other_texts_are_no_addresses(text: str) -> None:
    """Old spellings, ports and brackets are not judged but refused."""
    assert why_refused(text) == "not an IP address"
    assert not is_public(text)
