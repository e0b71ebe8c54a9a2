-- The embedded issuer: grants, their tokens and tickets. A token's digest is all that is known of it.

-- ended_at: revoked or expired, whichever comes first. A refresh changes current, previous and rotated_at alone, which
-- no index has.
CREATE TABLE grants (
    company      INTEGER NOT NULL,
    id           TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    client_name  TEXT NOT NULL,
    account_id   TEXT NOT NULL,
    scopes       TEXT NOT NULL,           -- separated by single spaces
    kind         TEXT NOT NULL,
    signed_in_at REAL NOT NULL,
    expires_at   REAL NOT NULL,
    current      TEXT NOT NULL,
    previous     TEXT,
    rotated_at   REAL,
    revoked_at   REAL,
    ended_at     REAL NOT NULL,
    PRIMARY KEY (company, id)
) WITHOUT ROWID;
CREATE INDEX grants_of_account ON grants (company, account_id, client_id) WHERE revoked_at IS NULL;
CREATE INDEX grants_of_client ON grants (company, client_id) WHERE revoked_at IS NULL;
CREATE INDEX grants_by_end ON grants (company, ended_at);

-- Without an index by grant, which would cost each refresh a page: a sweep walks through a part of the table instead.
CREATE TABLE refresh_tokens (
    company  INTEGER NOT NULL,
    digest   TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    PRIMARY KEY (company, digest)
) WITHOUT ROWID;

CREATE TABLE access_tokens (
    company    INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    grant_id   TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    account_id TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    expires_at REAL NOT NULL,
    resource   TEXT,
    jkt        TEXT,
    PRIMARY KEY (company, digest)
) WITHOUT ROWID;
CREATE INDEX access_tokens_by_end ON access_tokens (company, expires_at);

CREATE TABLE tickets (
    company    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    digest     TEXT NOT NULL,
    value      BLOB NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (company, kind, digest)
) WITHOUT ROWID;
CREATE INDEX tickets_by_end ON tickets (company, expires_at);

-- One-time ids of clients: a log, as the replay keys are one. key: a digest of (client, kind, jti).
CREATE TABLE spent (
    company INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    key     BLOB NOT NULL,
    until   REAL NOT NULL,
    PRIMARY KEY (company, n)
) WITHOUT ROWID;

-- Disabled accounts.
CREATE TABLE accounts (
    company INTEGER NOT NULL,
    id      TEXT NOT NULL,
    PRIMARY KEY (company, id)
) WITHOUT ROWID;
