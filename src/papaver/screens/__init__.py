"""The web pages of a Company that offers sign-in, as HTML: what `ports.pages` describes, rendered."""

from papaver.screens.pages import HtmlPages

__all__ = ["HtmlPages"]
