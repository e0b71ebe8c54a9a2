"""PostgreSQL: `PostgresVault` for a Personal Agent of many Users on several hosts."""

from papaver.stores.postgres.vault import PostgresVault
from papaver.stores.vault_key import VaultKey

__all__ = ["PostgresVault", "VaultKey"]
