"""Headless Chromium for tests of web pages: the real program, which finds a test's names on this machine."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, Page, Route, sync_playwright

from papaver.web.messages import Response
from tests.house.services import PACKAGES, program

__all__ = ["chromium", "faults_of", "served"]


@contextmanager
def chromium(*certificates: Path, ports: Mapping[str, int] | None = None) -> Generator[Browser]:
    """`ports`: where a host's port 443 is on this machine. `certificates`: the leaves to trust, and no others."""
    rules = ", ".join(f"MAP {host}:443 127.0.0.1:{port}" for host, port in (ports or {}).items())
    options = ["--no-sandbox", f"--ignore-certificate-errors-spki-list={','.join(map(_spki, certificates))}"]
    path = program("PAPAVER_CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        # Its sockets' paths have to be short, so it gets no long folder for temporary files.
        browser = playwright.chromium.launch(
            executable_path=path,
            args=[*options, *([f"--host-resolver-rules={rules}"] if rules else [])],
            env={**os.environ, "TMPDIR": "/tmp"},
        )
        try:
            yield browser
        finally:
            browser.close()


def _spki(certificate: Path) -> str:
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(spki).digest()).decode("ascii")


def served(page: Page, answers: Mapping[str, Response]) -> None:
    """Every request of this page is answered with one of these, by its URL without query; anything else is aborted."""

    def answer(route: Route) -> None:
        found = answers.get(route.request.url.partition("?")[0])
        if found is None:
            route.abort()
        else:
            route.fulfill(status=found.status, headers=dict(found.headers), body=found.body)

    page.route("**/*", answer)


def faults_of(page: Page) -> list[str]:
    """What axe-core finds that is serious or critical, as `rule: element`."""
    source = (PACKAGES / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    # The page's policy forbids scripts; what a debugger evaluates is not the page's.
    page.evaluate(f"() => {{ {source} }}")
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{one['id']}: {node['html']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
