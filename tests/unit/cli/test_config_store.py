"""`store` and `redis` of papaver.toml: files, databases, and what the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from papaver.cli.config_store import store_of
from papaver.protocol.errors import ConfigurationError
from papaver.stores.postgres import PostgresStore
from papaver.stores.sqlite import SqliteStore

DSN = "postgresql://shop:hunter2@db.example/shop"


def test_a_file_lies_beside_the_configuration(tmp_path: Path) -> None:
    """As it always did."""
    store = store_of(tmp_path / "papaver.toml", "poppy.db", None)
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / "poppy.db"


def test_a_database_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no password has to lie in the file, and none is shown."""
    monkeypatch.setenv("SHOP_DB", DSN)
    monkeypatch.setenv("SHOP_REDIS", "redis://cache.example:6379/0")
    for named, redis in ((DSN, None), ("env:SHOP_DB", "env:SHOP_REDIS")):
        store = store_of(tmp_path / "papaver.toml", named, redis)
        assert isinstance(store, PostgresStore)
        assert "hunter2" not in repr(store)


@pytest.mark.parametrize(
    ("store", "redis", "said"),
    [
        ("env:NOT_SET", None, "no NOT_SET"),
        ("mysql://db.example/shop", None, "another kind"),
        ("poppy.db", "redis://cache.example", "the store is a file"),
        (".", None, "expected the path of a file"),
    ],
)
def test_what_cannot_be_a_store_says_what_could(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, redis: str | None, said: str
) -> None:
    """The message names the key and what was expected."""
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(ConfigurationError, match=said) as refused:
        store_of(tmp_path / "papaver.toml", store, redis)
    assert refused.value.rule == "config.file"
