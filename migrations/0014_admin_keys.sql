-- +goose Up
-- How calls of operators were answered that had an Idempotency-Key, for a day.
CREATE TABLE admin_keys (
    operator text NOT NULL,
    key      text NOT NULL,
    request  bytea NOT NULL, -- SHA-256 of method, path and body
    turn     text NOT NULL UNIQUE, -- of who carries it out
    at       timestamptz NOT NULL DEFAULT clock_timestamp(), -- when it began, and then when it was answered
    lease    timestamptz, -- NULL: answered; else it is in flight, and given up then unless this is moved
    status   int,
    code     text,  -- of a problem; '': of none
    header   jsonb,
    body     bytea, -- NULL: in flight, or not kept
    PRIMARY KEY (operator, key),
    CHECK ((lease IS NULL) = (status IS NOT NULL AND code IS NOT NULL AND header IS NOT NULL))
);
CREATE INDEX admin_keys_oldest ON admin_keys (at);

-- The answer was that of an earlier call with the same key; nothing was carried out.
ALTER TABLE admin_outcomes ADD COLUMN replayed boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE admin_outcomes DROP COLUMN replayed;
DROP TABLE admin_keys;
