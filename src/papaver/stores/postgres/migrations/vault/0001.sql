-- A Personal Agent's vault: nothing here can be read without its key.

CREATE TABLE facts (
    name  text PRIMARY KEY,   -- 'id' and 'check'
    value bytea NOT NULL
);

CREATE TABLE sealed (
    id    bytea PRIMARY KEY,                     -- keyed hash of kind and key
    kind  bytea NOT NULL,                        -- keyed hash of the kind
    n     bigint GENERATED ALWAYS AS IDENTITY,   -- the order of making
    value bytea NOT NULL                         -- nonce, then key and value encrypted
);
CREATE INDEX sealed_by_kind ON sealed (kind, n);
