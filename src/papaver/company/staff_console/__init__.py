"""The staff console: a page on which people at the Company take conversations over (8.9)."""

from papaver.company.staff_console.configuration import Authenticate, SignInAt, Visit

__all__ = ["Authenticate", "SignInAt", "Visit"]
