"""What makes the demo fail: a step that could not be verified."""

from __future__ import annotations

from papaver.values.errors import PapaverError

__all__ = ["DemoFailed", "check"]


class DemoFailed(PapaverError):
    """`expected` and `found` are what differed, or `detail` is what a process said."""

    code = "demo_failed"

    def __init__(self, description: str, detail: str = "", *, expected: str = "", found: str = "") -> None:
        self.expected, self.found = expected, found
        super().__init__(description, rule="demo.step", detail=detail)


def check(claim: str, expected: object, found: object) -> None:
    """Raises DemoFailed with both values unless they are equal."""
    if expected != found:
        raise DemoFailed(f"not so: {claim}", expected=repr(expected), found=repr(found))
