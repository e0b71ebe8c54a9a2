"""A User's browser without a screen, on real sockets: it follows redirects, keeps cookies and sends a page's forms."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

__all__ = ["FormsBrowser", "Page"]


class Page(HTMLParser):
    """What a page says, and its forms: action, fields that are sent, buttons."""

    def __init__(self, url: str, status: int, document: str) -> None:
        super().__init__()
        self.url, self.status, self.document = url, status, document
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((found.get("action", ""), []))
        elif tag == "input" and self.forms and (found.get("type") != "checkbox" or "checked" in found):
            self.forms[-1][1].append((found["name"], found.get("value", "")))


@dataclass
class FormsBrowser:
    """`port` is where every https name is served on this machine, but those that are `elsewhere`."""

    port: int
    ca_file: Path
    elsewhere: Mapping[str, int] = field(default_factory=dict[str, int])
    _cookies: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def open(self, url: str, body: str | None = None, stop: str | None = None) -> Page:
        """A page, after every redirect but one to a URL that begins with `stop`: that is the page's URL then."""
        for _ in range(20):
            status, location, text = self._request(url, body)
            if status not in (302, 303):
                return Page(url, status, text)
            url, body = urljoin(url, location), None
            if stop is not None and url.startswith(stop):
                return Page(url, 0, "")
        raise AssertionError(f"redirects without an end: {url}")

    def send(self, page: Page, typed: dict[str, str], without: tuple[str, ...] = (), stop: str | None = None) -> Page:
        """Send the first form of a page; `typed` in place of its fields, without some values."""
        action, fields = page.forms[0]
        sent = [(name, value) for name, value in fields if name not in typed and value not in without]
        return self.open(urljoin(page.url, action), urlencode([*sent, *typed.items()]), stop)

    def approve(self, url: str, without: tuple[str, ...] = (), stop: str | None = None) -> Page:
        """Where an authorization URL leads: the consent page, approved."""
        return self.send(self.open(url), {"decision": "approve"}, without, stop)

    def _request(self, url: str, body: str | None) -> tuple[int, str, str]:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        else:
            connection = _Mapped(parts.hostname or "", self.elsewhere.get(parts.netloc, self.port), self.ca_file)
        cookies = "; ".join(f"{name}={value}" for (host, name), value in self._cookies.items() if host == parts.netloc)
        headers = {"host": parts.netloc, "accept": "text/html", **({"cookie": cookies} if cookies else {})}
        if body is not None:
            origin = f"{parts.scheme}://{parts.netloc}"
            headers |= {"content-type": "application/x-www-form-urlencoded", "origin": origin}
        try:
            target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            connection.request("GET" if body is None else "POST", target, body, headers)
            answer = connection.getresponse()
            for line in answer.headers.get_all("set-cookie") or ():
                name, _, value = line.partition(";")[0].partition("=")
                self._cookies[parts.netloc, name] = value
            return answer.status, answer.headers.get("location", ""), answer.read().decode()
        finally:
            connection.close()


class _Mapped(http.client.HTTPSConnection):
    """TLS to a name that is served on this machine."""

    def __init__(self, name: str, port: int, ca_file: Path) -> None:
        self._trusted = ssl.create_default_context(cafile=str(ca_file))
        super().__init__("127.0.0.1", port, timeout=30, context=self._trusted)
        self._name = name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._name)
