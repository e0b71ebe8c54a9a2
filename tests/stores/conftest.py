"""The contracts' own assertions explain themselves."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("papaver.testing.stores", "papaver.testing.vaults")
