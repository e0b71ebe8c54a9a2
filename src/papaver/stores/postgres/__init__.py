"""PostgreSQL: `PostgresStore` for a Company of several replicas, `PostgresVault` for a Personal Agent of many Users."""

from papaver.stores.postgres.store import PostgresStore
from papaver.stores.postgres.vault import PostgresVault
from papaver.stores.vault_key import VaultKey

__all__ = ["PostgresStore", "PostgresVault", "VaultKey"]
