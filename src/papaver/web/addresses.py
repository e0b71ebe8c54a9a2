"""IP addresses: public, or special-use and which use (the IANA special-purpose registries, not `ipaddress.is_global`).

`is_global` takes multicast, NAT64 and 6to4 forms of private addresses, and, on some releases, more for global.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

__all__ = ["is_public", "why_refused"]

_V4: Final = tuple(
    (IPv4Network(block), use)
    for block, use in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private use"),
        ("100.64.0.0/10", "shared by carriers (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private use"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "private use"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)
"""The first block that holds an address names its use. AS112 and AMT blocks are special but global, so not here."""

_V6: Final = tuple(
    (IPv6Network(block), use)
    for block, use in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard only"),
        ("100:0:0:1::/64", "dummy prefix"),
        ("2001::/32", "Teredo"),
        ("2001:2::/48", "benchmarking"),
        ("2001:10::/28", "ORCHID"),
        ("2001:20::/28", "ORCHID"),
        ("2001:30::/28", "drone identities"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
# Only this much of IPv6 has been given out as global unicast; the rest is refused without a name of its own.
_V6_UNICAST: Final = IPv6Network("2000::/3")
# Forms in which a socket or a resolver hands out an IPv4 address; the address inside is judged.
_V6_WRAPPED: Final = ((IPv6Network("::ffff:0:0/96"), "IPv4-mapped"), (IPv6Network("64:ff9b::/96"), "NAT64"))


def is_public(address: str | IPv4Address | IPv6Address) -> bool:
    """Whether a request may go to this address of the open internet. What is not an address is not public."""
    return why_refused(address) is None


def why_refused(address: str | IPv4Address | IPv6Address) -> str | None:
    """The special use that keeps an address from being public, or None for a public one.

    IPv4-mapped and NAT64 forms are judged by the address inside. Tunnels (Teredo, 6to4), IPv4-compatible and scoped
    addresses are refused whatever is inside. An address is given as its text (no port, no brackets, no old spellings
    such as 127.1) or as an object of `ipaddress`.
    """
    if isinstance(address, str):
        try:
            address = ipaddress.ip_address(address)
        except ValueError:
            return "not an IP address"
    if isinstance(address, IPv4Address):
        return _use_of_v4(address)
    return _use_of_v6(address)


def _use_of_v4(address: IPv4Address) -> str | None:
    for block, use in _V4:
        if address in block:
            return f"{use} ({block})"
    return None


def _use_of_v6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "scoped to one interface"
    for block, form in _V6_WRAPPED:
        if address in block:
            use = _use_of_v4(IPv4Address(int(address) & 0xFFFF_FFFF))
            return None if use is None else f"{form} form of {use}"
    for block, use in _V6:
        if address in block:
            return f"{use} ({block})"
    return None if address in _V6_UNICAST else f"not given out (outside {_V6_UNICAST})"
