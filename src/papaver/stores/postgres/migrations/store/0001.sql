-- Every row belongs to one Company. Text that others choose lies in bytea or as a digest where U+0000 may be in it.

CREATE TABLE companies (
    company integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id      text NOT NULL UNIQUE,
    secret  bytea NOT NULL
);

CREATE TABLE sessions (
    company   integer NOT NULL,
    client_id text NOT NULL,
    sid       text NOT NULL,
    key       text NOT NULL,
    user_id   text NOT NULL,
    agent_id  text,
    seen_at   float8 NOT NULL,
    ended_at  float8,
    PRIMARY KEY (company, client_id, sid)
);
CREATE INDEX sessions_of_user ON sessions (company, client_id, user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_age ON sessions (company, ended_at, seen_at);

-- head: the record of the whole head; the columns beside it are what queries need. Those with an index change rarely.
-- The lease is here too: token grows for ever, holder is NULL while nobody works on it.
-- attends: 1 while a person is waited for, 2 while one has joined.
CREATE TABLE conversations (
    company       integer NOT NULL,
    id            text COLLATE "C" NOT NULL,
    head          bytea NOT NULL,
    last_seq      bigint NOT NULL,
    changed_at    float8 NOT NULL,
    changed_day   integer NOT NULL,       -- coarse, so that the index below changes once a day, not once a message
    closed        boolean NOT NULL,
    due_since     float8,
    client_key    bigint NOT NULL,
    user_key      bigint NOT NULL,
    attends       smallint,
    attends_since float8,
    prunable      float8,
    token         bigint NOT NULL DEFAULT 0,
    turn_id       text,
    until_seq     bigint,
    holder        text,
    until         float8,
    PRIMARY KEY (company, id)
) WITH (fillfactor = 70);
CREATE INDEX conversations_idle ON conversations (company, changed_day) WHERE NOT closed;
CREATE INDEX conversations_due ON conversations (company, due_since) WHERE due_since IS NOT NULL;
CREATE INDEX conversations_held ON conversations (company, holder) WHERE holder IS NOT NULL;
CREATE INDEX conversations_attended ON conversations (company, attends, attends_since) WHERE attends IS NOT NULL;
CREATE INDEX conversations_prunable ON conversations (company, prunable) WHERE prunable IS NOT NULL;

CREATE TABLE events (
    company      integer NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (company, conversation, seq)
);

CREATE TABLE receipts (
    company      integer NOT NULL,
    key          bytea NOT NULL,
    fingerprint  text NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    accepted_as  integer NOT NULL,
    status       text NOT NULL,
    responder    text NOT NULL,
    PRIMARY KEY (company, key)
);

CREATE TABLE replays (
    company integer NOT NULL,
    key     bytea NOT NULL,
    until   float8 NOT NULL,
    PRIMARY KEY (company, key)
);
CREATE INDEX replays_by_end ON replays (company, until);

CREATE TABLE journal (
    company      integer NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    key          bytea NOT NULL,
    value        bytea NOT NULL,
    PRIMARY KEY (company, conversation, key)
);

-- The outbox. A number is never used again: whoever held a row for too long must not delete another one.
CREATE TABLE notes (
    n            bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    company      integer NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    kind         text NOT NULL,
    seq          bigint NOT NULL,
    first_seq    bigint NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    free_at      float8 NOT NULL DEFAULT 0,
    holder       text
);
CREATE INDEX notes_of_conversation ON notes (company, conversation, n);

CREATE TABLE clients (
    company integer NOT NULL,
    id      text NOT NULL,
    verdict text,
    seen_at float8,
    PRIMARY KEY (company, id)
);
CREATE INDEX clients_by_age ON clients (company, seen_at) WHERE verdict IS NULL;

CREATE TABLE documents (
    company     integer NOT NULL,
    url         text NOT NULL,
    fetched_at  float8 NOT NULL,
    fresh_until float8 NOT NULL,
    body        bytea NOT NULL,
    PRIMARY KEY (company, url)
);
CREATE INDEX documents_by_age ON documents (company, fetched_at);

-- The embedded issuer: grants, their tokens and tickets. A token's digest is all that is known of it.
-- ended_at: revoked or expired, whichever comes first.
CREATE TABLE grants (
    company      integer NOT NULL,
    id           text NOT NULL,
    client_id    text NOT NULL,
    client_name  text NOT NULL,
    account_id   text NOT NULL,
    scopes       text NOT NULL,
    kind         text NOT NULL,
    signed_in_at float8 NOT NULL,
    expires_at   float8 NOT NULL,
    current      text NOT NULL,
    previous     text,
    rotated_at   float8,
    revoked_at   float8,
    ended_at     float8 NOT NULL,
    PRIMARY KEY (company, id)
);
CREATE INDEX grants_of_account ON grants (company, account_id, client_id) WHERE revoked_at IS NULL;
CREATE INDEX grants_of_client ON grants (company, client_id) WHERE revoked_at IS NULL;
CREATE INDEX grants_by_end ON grants (company, ended_at);

CREATE TABLE refresh_tokens (
    company  integer NOT NULL,
    digest   text NOT NULL,
    grant_id text NOT NULL,
    PRIMARY KEY (company, digest)
);
CREATE INDEX refresh_tokens_of_grant ON refresh_tokens (company, grant_id);

CREATE TABLE access_tokens (
    company    integer NOT NULL,
    digest     text NOT NULL,
    grant_id   text NOT NULL,
    client_id  text NOT NULL,
    account_id text NOT NULL,
    scopes     text NOT NULL,
    expires_at float8 NOT NULL,
    resource   text,
    jkt        text,
    PRIMARY KEY (company, digest)
);
CREATE INDEX access_tokens_by_end ON access_tokens (company, expires_at);

CREATE TABLE tickets (
    company    integer NOT NULL,
    kind       text NOT NULL,
    digest     text NOT NULL,
    value      bytea NOT NULL,
    expires_at float8 NOT NULL,
    PRIMARY KEY (company, kind, digest)
);
CREATE INDEX tickets_by_end ON tickets (company, expires_at);

CREATE TABLE spent (
    company integer NOT NULL,
    key     bytea NOT NULL,
    until   float8 NOT NULL,
    PRIMARY KEY (company, key)
);
CREATE INDEX spent_by_end ON spent (company, until);

CREATE TABLE accounts (
    company integer NOT NULL,
    id      text NOT NULL,
    PRIMARY KEY (company, id)
);

-- One row that each process writes to see that writing works.
CREATE TABLE probes (
    n bigint NOT NULL
);
INSERT INTO probes (n) VALUES (0);
