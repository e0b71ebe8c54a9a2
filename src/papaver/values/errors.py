"""The root of every error that papaver raises, and what each of them carries."""

from __future__ import annotations

from papaver.values.told import told

__all__ = ["PapaverError"]


class PapaverError(Exception):
    """An error with a public code and sentence, and a private reason.

    `code`         the machine-readable code of the specification or RFC, or our own
    `description`  one sentence for the other party's developer; safe to send
    `detail`       the private reason, for our log only; never sent, never a secret
    `rule`         the id of the clause that was broken, such as `session.aud-is-company`
    `expected`, `found`, `remedy`  where two values differ: both, and what to do; a traceback shows them as notes
    """

    code: str = "error"
    description: str = ""
    expected: str = ""
    found: str = ""
    remedy: str = ""

    def __init__(self, description: str = "", *, rule: str = "", detail: str = "") -> None:
        self.description = description or type(self).description
        self.rule = rule
        self.detail = detail
        super().__init__(self.description)

    def compare(self, expected: str, found: str, remedy: str) -> None:
        """Say what was expected, what came, and what to do next."""
        self.expected, self.found, self.remedy = expected, found, remedy
        for name, value in (("expected", expected), ("found", found), ("next", remedy)):
            if value:
                self.add_note(f"  {name:<9} {told(value)}")

    def __reduce__(self) -> tuple[object, ...]:
        """What the error carries is copied as it is, whatever `__init__` of a subclass asks for."""
        return _without_init, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{self.code}: {self.description}{rule}" if self.description else f"{self.code}{rule}"


def _without_init(kind: type[PapaverError], args: tuple[object, ...]) -> PapaverError:
    return kind.__new__(kind, *args)
