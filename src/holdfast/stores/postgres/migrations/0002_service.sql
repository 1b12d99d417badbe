-- What the service needs: tokens, callbacks, workers of other kinds, asking a worker to drain, and how
-- many tasks of a lane have ended lately.
--
-- `flags` gets one more: 16 a callback. Tasks without one pay nothing for it.

-- Everybody is at work. In the order in which they take these, so that nobody waits crosswise.
LOCK TABLE holdfast.worker, holdfast.task, holdfast.tally IN ACCESS EXCLUSIVE MODE;

-- Only digests are kept: who reads this table cannot use what is in it.
CREATE TABLE holdfast.token (
    number integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    id text NOT NULL PRIMARY KEY,
    name text NOT NULL,
    scopes text[] NOT NULL,
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

-- The URL that is told of the task's end.
ALTER TABLE holdfast.task ADD COLUMN callback text;

-- Notices of ended tasks that were not delivered yet.
CREATE TABLE holdfast.callback (
    id uuid NOT NULL PRIMARY KEY, -- of the task
    ended_at bigint NOT NULL,
    due_at bigint NOT NULL,
    tries integer NOT NULL DEFAULT 0 -- deliveries begun
) WITH (fillfactor = 80);

CREATE INDEX callback_due ON holdfast.callback (due_at);

ALTER TABLE holdfast.worker
ADD COLUMN kind text NOT NULL DEFAULT 'python',
ADD COLUMN drain_requested boolean NOT NULL DEFAULT false;

-- Of what ended (completed, failed, dead_letter) in the last two minutes: where it was. NULL for what
-- was taken back since, and for everything else.
ALTER TABLE holdfast.tally ADD COLUMN lane integer;
