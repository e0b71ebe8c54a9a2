"""The User in the demo: opens the Company's pages as a browser does, signs in, and decides. Never the agent's code.

`the_user` takes headless Chromium where it is installed, and plain HTTP forms where not.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import shutil
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode, urljoin, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from papaver.demo.outcome import DemoFailed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType

__all__ = ["ChromiumUser", "Colleague", "FormsUser", "Place", "User", "the_user"]

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
MOST_HOPS: Final = 20
SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Place:
    """Where the Company's host names are on this machine, and what they are trusted by."""

    hosts: tuple[str, ...]
    port: int
    certificate: Path
    ca_file: Path


class User(Protocol):
    """What a User does on pages. Each returns what the last page says. Raises DemoFailed."""

    @property
    def browser(self) -> str:
        """What is used, for people."""
        ...

    def approve(self, url: str, email: str, password: str) -> str:
        """Sign in where `url` leads, approve everything that is asked for, and go where that leads."""
        ...

    def disconnect(self, url: str, email: str, password: str, host: str) -> str:
        """Sign in at the connected agents, and disconnect the one of this host."""
        ...


def the_user(place: Place) -> User:
    """Chromium where it and its driver are installed and start, else forms."""
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if program is not None and find_spec("playwright") is not None:
        chromium = ChromiumUser(place, program)
        if chromium.starts():
            return chromium
    return FormsUser(place)


@dataclass
class ChromiumUser:
    """Headless Chromium. It resolves the Company's names to this machine and trusts the one certificate."""

    place: Place
    program: str
    browser: str = "headless Chromium"

    def approve(self, url: str, email: str, password: str) -> str:
        return self._on_pages(url, email, password, 'button[value="approve"]')

    def disconnect(self, url: str, email: str, password: str, host: str) -> str:
        return self._on_pages(url, email, password, f'button[aria-label="Disconnect {host}"]')

    def starts(self) -> bool:
        """Whether it runs on this machine at all."""
        from playwright.sync_api import Error, sync_playwright

        try:
            with sync_playwright() as playwright:
                self._launch(playwright.chromium).close()
        except Error:
            return False
        return True

    def _launch(self, kind: BrowserType) -> Browser:
        rules = ", ".join(f"MAP {host}:443 127.0.0.1:{self.place.port}" for host in self.place.hosts)
        options = [
            "--no-sandbox",
            f"--host-resolver-rules={rules}",
            f"--ignore-certificate-errors-spki-list={_spki(self.place.certificate)}",
        ]
        # Its sockets' paths have to be short, so it gets no long folder for temporary files.
        environment: dict[str, str | float | bool] = {**os.environ, "TMPDIR": "/tmp"}
        return kind.launch(executable_path=self.program, args=options, env=environment)

    def _on_pages(self, url: str, email: str, password: str, button: str) -> str:
        from playwright.sync_api import Error, sync_playwright

        try:
            with sync_playwright() as playwright:
                chromium = self._launch(playwright.chromium)
                try:
                    page = chromium.new_page()
                    page.set_default_timeout(SECONDS * 1000)
                    page.goto(url)
                    page.fill('input[name="email"]', email)
                    page.fill('input[name="password"]', password)
                    page.click('button:has-text("Sign in")')
                    with page.expect_navigation():
                        page.click(button)
                    return page.inner_text("body")
                finally:
                    chromium.close()
        except Error as error:
            raise DemoFailed("the User's browser did not get through", str(error)) from error


def _spki(certificate: Path) -> str:
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(spki).digest()).decode("ascii")


@dataclass
class FormsUser:
    """A browser without a screen: it follows redirects, keeps cookies, and sends the forms that a page has."""

    place: Place
    browser: str = "plain HTTP forms"
    _cookies: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def approve(self, url: str, email: str, password: str) -> str:
        page = self._signed_in(url, email, password)
        form = page.form_with("decision", "approve")
        return self._send(page, form, [*form.fields, ("decision", "approve")]).text

    def disconnect(self, url: str, email: str, password: str, host: str) -> str:
        page = self._signed_in(url, email, password)
        for form in page.forms:
            if urlsplit(dict(form.fields).get("client_id", "")).hostname == host:
                return self._send(page, form, form.fields).text
        raise DemoFailed(f"the page has no form to disconnect {host}", found=page.text)

    def _signed_in(self, url: str, email: str, password: str) -> _Page:
        page = self._open("GET", url)
        form = page.form_with("password")
        typed = {"email": email, "password": password}
        return self._send(page, form, [(name, typed.get(name, value)) for name, value in form.fields])

    def _send(self, page: _Page, form: _Form, fields: list[tuple[str, str]]) -> _Page:
        return self._open("POST", urljoin(page.url, form.action), urlencode(fields))

    def _open(self, method: str, url: str, body: str | None = None) -> _Page:
        for _ in range(MOST_HOPS):
            status, headers, text = self._request(method, url, body)
            if status not in (302, 303):
                return _Page(url, status, text)
            method, body, url = "GET", None, urljoin(url, headers["location"])
        raise DemoFailed("the pages lead on without an end", found=url)

    def _request(self, method: str, url: str, body: str | None) -> tuple[int, Mapping[str, str], str]:
        parts = urlsplit(url)
        host = parts.hostname or ""
        target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection = self._connection(parts.scheme, host, parts.port)
        cookies = "; ".join(f"{name}={value}" for (of, name), value in self._cookies.items() if of == host)
        headers = {"host": parts.netloc, "accept": "text/html", **({"cookie": cookies} if cookies else {})}
        if body is not None:
            headers |= {
                "content-type": "application/x-www-form-urlencoded",
                "origin": f"{parts.scheme}://{parts.netloc}",
            }
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            for line in response.headers.get_all("set-cookie") or ():
                name, _, value = line.partition(";")[0].partition("=")
                self._cookies[host, name] = value
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read().decode("utf-8", "replace")
        except OSError as error:
            raise DemoFailed(f"{host} cannot be reached", str(error)) from error
        finally:
            connection.close()

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "http" and host in ("127.0.0.1", "::1"):  # back at the Personal Agent (RFC 8252 7.3)
            return http.client.HTTPConnection(host, port, timeout=SECONDS)
        if scheme != "https" or host not in self.place.hosts:
            raise DemoFailed("a page leads where the User would not go", found=f"{scheme}://{host}")
        return _Mapped(host, self.place)


class Colleague(FormsUser):
    """A person of the Company at its staff console, by its pages' own forms (8.9)."""

    def __init__(self, place: Place, console: str, password: str) -> None:
        super().__init__(place)
        page = self._open("GET", console)
        self._queue = self._send(page, page.form_with("password"), [("password", password)])

    def take_over(self, text: str) -> str:
        """Take the conversation in the queue in which this was said; all that its page shows. Raises DemoFailed."""
        for link in self._queue.links:
            if "/conversations/" in link:
                page = self._open("GET", urljoin(self._queue.url, link))
                if text in page.text:
                    self._do(page, "take")
                    return page.text
        raise DemoFailed("nobody in the queue asks that", expected=text, found=self._queue.text)

    def answer(self, text: str) -> None:
        self._do(self._here, "say", text=text)

    def hand_back(self) -> None:
        self._do(self._here, "back")

    def _do(self, page: _Page, action: str, **typed: str) -> None:
        form = next((one for one in page.forms if one.action.endswith(f"/{action}")), None)
        if form is None:
            raise DemoFailed(f"the staff console has no form to {action}", found=page.text)
        self._here = self._send(page, form, [(name, typed.get(name, value)) for name, value in form.fields])
        if self._here.status != 200:
            raise DemoFailed(f"the staff console did not {action}", found=self._here.text)


class _Mapped(http.client.HTTPSConnection):
    """TLS to a name that is served on this machine."""

    def __init__(self, host: str, place: Place) -> None:
        self._trusted = ssl.create_default_context(cafile=str(place.ca_file))
        super().__init__("127.0.0.1", place.port, timeout=SECONDS, context=self._trusted)
        self._name = host

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


@dataclass
class _Form:
    action: str
    fields: list[tuple[str, str]]
    buttons: list[tuple[str, str]]


class _Page(HTMLParser):
    """A page's text and forms, as far as ours need it: inputs, ticked boxes and buttons."""

    def __init__(self, url: str, status: int, document: str) -> None:
        super().__init__()
        self.url, self.status = url, status
        self.forms: list[_Form] = []
        self.links: list[str] = []
        self._words: list[str] = []
        self.feed(document)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._words).split())

    def form_with(self, name: str, value: str | None = None) -> _Form:
        """The form with this field or button. Raises DemoFailed."""
        for form in self.forms:
            for found, its_value in (*form.fields, *form.buttons):
                if found == name and value in (None, its_value):
                    return form
        raise DemoFailed(f"the page at {urlsplit(self.url).path} ({self.status}) has no form with {name}", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(found.get("href", ""))
        elif tag == "form":
            self.forms.append(_Form(found.get("action", ""), [], []))
        elif tag == "input" and self.forms and (found.get("type") != "checkbox" or "checked" in found):
            self.forms[-1].fields.append((found.get("name", ""), found.get("value", "")))
        elif tag == "textarea" and self.forms:
            self.forms[-1].fields.append((found.get("name", ""), ""))
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append((found.get("name", ""), found.get("value", "")))

    def handle_data(self, data: str) -> None:
        self._words.append(data)
