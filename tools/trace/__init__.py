"""Requirement traceability: every row of the manifest, the tests that show it, and that these would notice."""
