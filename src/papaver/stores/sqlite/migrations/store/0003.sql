-- attends: 1 while a person is waited for, 2 while one has joined; since when. prunable: the time of the oldest event
-- that may go one day. All three change rarely, so that a message does not touch their indexes.
ALTER TABLE conversations ADD COLUMN attends INTEGER;
ALTER TABLE conversations ADD COLUMN attends_since REAL;
ALTER TABLE conversations ADD COLUMN prunable REAL;
UPDATE conversations SET prunable = json_extract(CAST(head AS TEXT), '$.created_at') / 1000000.0
    WHERE json_extract(CAST(head AS TEXT), '$.last_seq') > 1;   -- nothing was ever pruned before
CREATE INDEX conversations_attended ON conversations (company, attends, attends_since) WHERE attends IS NOT NULL;
CREATE INDEX conversations_prunable ON conversations (company, prunable) WHERE prunable IS NOT NULL;

-- The outbox. A row is told when it is the first of its conversation and free_at has passed, or its holder is dead.
-- A number is never used again: whoever held a row for too long must not delete another one.
ALTER TABLE companies ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
CREATE TABLE notes (
    company      INTEGER NOT NULL,
    n            INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    kind         TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    first_seq    INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    free_at      REAL NOT NULL DEFAULT 0,
    holder       TEXT,
    PRIMARY KEY (company, n)
) WITHOUT ROWID;
CREATE INDEX notes_of_conversation ON notes (company, conversation, n);
