"""The contract that every Company's store passes. Each case is a coroutine function of one maker of stores.

    @pytest.mark.parametrize("case", STORE_CONTRACT, ids=lambda case: case.__name__)
    async def test_my_store(case, tmp_path):
        await case(lambda: MyStore(tmp_path / "store"))

The maker is called several times in one case and must always open the same data; in the next case, other data. A store
that several processes may open at once passes SHARED_STORE_CONTRACT as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from papaver.testing.stores.grant_cases import GRANT_CASES
from papaver.testing.stores.grant_table_cases import GRANT_TABLE_CASES, SHARED_GRANT_CASES
from papaver.testing.stores.keeping_cases import KEEPING_CASES
from papaver.testing.stores.log_cases import LOG_CASES
from papaver.testing.stores.outbox_cases import OUTBOX_CASES, SHARED_OUTBOX_CASES
from papaver.testing.stores.relative_cases import RELATIVE_CASES
from papaver.testing.stores.samples import StoreMaker
from papaver.testing.stores.table_cases import SHARED_CASES, TABLE_CASES
from papaver.testing.stores.turn_cases import TURN_CASES

__all__ = ["SHARED_STORE_CONTRACT", "STORE_CONTRACT", "StoreCase", "StoreMaker"]

StoreCase = Callable[[StoreMaker], Awaitable[None]]

STORE_CONTRACT: tuple[StoreCase, ...] = (
    *LOG_CASES,
    *TURN_CASES,
    *RELATIVE_CASES,
    *OUTBOX_CASES,
    *KEEPING_CASES,
    *TABLE_CASES,
    *GRANT_CASES,
    *GRANT_TABLE_CASES,
)
SHARED_STORE_CONTRACT: tuple[StoreCase, ...] = (*SHARED_CASES, *SHARED_OUTBOX_CASES, *SHARED_GRANT_CASES)
