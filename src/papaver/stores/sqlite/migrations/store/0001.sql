-- Every row belongs to one Company, and the Company is the first column of each primary key.

CREATE TABLE companies (
    company INTEGER PRIMARY KEY,          -- our own short number for it
    id      TEXT NOT NULL UNIQUE,         -- the Company's identifier
    secret  BLOB NOT NULL                 -- authenticates cursors; made once
);

CREATE TABLE sessions (
    company   INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    sid       TEXT NOT NULL,
    key       TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    agent_id  TEXT,
    seen_at   REAL NOT NULL,
    ended_at  REAL,
    PRIMARY KEY (company, client_id, sid)
) WITHOUT ROWID;
CREATE INDEX sessions_of_user ON sessions (company, client_id, user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_age ON sessions (company, ended_at, seen_at);

-- head: the record of the whole head; the columns beside it are what queries need.
-- The lease is here too: token grows for ever, holder is NULL while nobody works on it.
CREATE TABLE conversations (
    company     INTEGER NOT NULL,
    id          TEXT NOT NULL,
    head        BLOB NOT NULL,
    closed      INTEGER NOT NULL,
    changed_at  REAL NOT NULL,
    changed_day INTEGER NOT NULL,         -- coarse, so that the index below changes once a day, not once a message
    due_since   REAL,
    client_key  INTEGER NOT NULL DEFAULT 0,   -- numbers that stand for whose it is: nobody gets every turn
    user_key    INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,
    turn_id     TEXT,
    until_seq   INTEGER,
    holder      TEXT,
    until       REAL,
    PRIMARY KEY (company, id)
) WITHOUT ROWID;
CREATE INDEX conversations_idle ON conversations (company, changed_day) WHERE closed = 0;
CREATE INDEX conversations_held ON conversations (company, holder, client_key, user_key) WHERE holder IS NOT NULL;
CREATE INDEX conversations_due ON conversations (company, due_since, holder, until, client_key, user_key)
    WHERE due_since IS NOT NULL;

CREATE TABLE events (
    company      INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (company, conversation, seq)
) WITHOUT ROWID;

-- key: a digest of (client, User, message id), so that the table stays small and the lookup short.
CREATE TABLE receipts (
    company      INTEGER NOT NULL,
    key          BLOB NOT NULL,
    fingerprint  TEXT NOT NULL,
    conversation TEXT NOT NULL,
    accepted_as  INTEGER NOT NULL,
    status       TEXT NOT NULL,
    responder    TEXT NOT NULL,
    PRIMARY KEY (company, key)
) WITHOUT ROWID;

-- A log: each process reads on before it writes. key: a digest of (client, jti).
CREATE TABLE replays (
    company INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    key     BLOB NOT NULL,
    until   REAL NOT NULL,
    PRIMARY KEY (company, n)
) WITHOUT ROWID;

CREATE TABLE journal (
    company      INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    key          TEXT NOT NULL,
    value        BLOB NOT NULL,
    PRIMARY KEY (company, conversation, key)
) WITHOUT ROWID;

CREATE TABLE clients (
    company INTEGER NOT NULL,
    id      TEXT NOT NULL,
    verdict TEXT,
    seen_at REAL,
    PRIMARY KEY (company, id)
) WITHOUT ROWID;
CREATE INDEX clients_by_age ON clients (company, seen_at) WHERE verdict IS NULL;

CREATE TABLE documents (
    company     INTEGER NOT NULL,
    url         TEXT NOT NULL,
    fetched_at  REAL NOT NULL,
    fresh_until REAL NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (company, url)
) WITHOUT ROWID;
CREATE INDEX documents_by_age ON documents (company, fetched_at);

-- What each group commit changed, for the watchers of other processes. Hints: old ones are deleted.
CREATE TABLE wakes (
    company       INTEGER NOT NULL,
    n             INTEGER NOT NULL,
    origin        TEXT NOT NULL,          -- the holder that committed
    conversations TEXT NOT NULL,          -- a JSON array of ids; "" stands for the turns
    PRIMARY KEY (company, n)
) WITHOUT ROWID;

-- One row a process may write to see that writing works; company is 0.
CREATE TABLE probes (
    company INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (company)
) WITHOUT ROWID;
