"""The web pages of a Company that offers sign-in, as HTML: consent, device code, connected agents, messages."""

from papaver.screens.html import HtmlPages

__all__ = ["HtmlPages"]
