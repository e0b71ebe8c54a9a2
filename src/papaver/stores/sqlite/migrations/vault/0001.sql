-- A Personal Agent's vault: nothing here can be read without its key.

CREATE TABLE facts (
    name  TEXT PRIMARY KEY,   -- 'id', 'guard' and 'check'
    value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE sealed (
    n     INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order of making
    kind  BLOB NOT NULL,                       -- keyed hash of the kind
    id    BLOB NOT NULL UNIQUE,                -- keyed hash of kind and key
    value BLOB NOT NULL                        -- nonce, then key and value encrypted
);
CREATE INDEX sealed_by_kind ON sealed (kind, n);
