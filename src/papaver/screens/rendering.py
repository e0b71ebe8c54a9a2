"""Templates and assets of our pages: nothing inline, every value cleaned and escaped, links change with content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from papaver.screens.headers import asset_headers
from papaver.screens.shown import line
from papaver.web.messages import Headers, Response

__all__ = ["Rendering"]

MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "js": "text/javascript; charset=utf-8",
}


class Rendering:
    """Renders templates to responses. `assets` are names of files in `static/`; `given` is there in every template."""

    def __init__(
        self, assets: tuple[str, ...], filters: Mapping[str, Callable[..., object]], given: Mapping[str, object]
    ) -> None:
        folder = files("papaver.screens") / "static"
        self._assets = {path: (folder / path).read_bytes() for path in assets}
        self._templates = Environment(
            loader=PackageLoader("papaver.screens", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_seen,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(filters)
        self._given = {**given, "edition": sha256(b"".join(self._assets.values())).hexdigest()[:12]}

    def page(self, template: str, status: int, headers: Headers, **values: Any) -> Response:
        html = self._templates.get_template(template).render(self._given, **values)
        return Response(status, headers, html.encode())

    def asset(self, path: str) -> Response | None:
        """One of the assets by its name; None for any other name."""
        body = self._assets.get(path)
        if body is None:
            return None
        return Response(200, asset_headers(MEDIA_TYPES[path.rpartition(".")[2]]), body)


def _seen(value: object) -> object:
    """Whatever a template puts out goes through here, before it is escaped."""
    return line(value) if isinstance(value, str) and not isinstance(value, Markup) else value
