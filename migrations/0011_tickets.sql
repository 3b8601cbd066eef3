-- +goose Up
-- What an event asks beside its prices.
CREATE TABLE event_fees (
    event_id text NOT NULL REFERENCES events ON DELETE CASCADE,
    position int NOT NULL, -- in the order in which they are shown
    name     text NOT NULL,
    per      text NOT NULL CHECK (per IN ('ticket', 'percent', 'order')),
    amount   bigint NOT NULL CHECK (amount >= 0), -- minor units; of percent basis points
    PRIMARY KEY (event_id, position),
    UNIQUE (event_id, name),
    CHECK (per <> 'percent' OR amount <= 10000)
);

-- price is all that a ticket costs: those of a booking add up to what is charged.
-- fees is its share of them.
ALTER TABLE tickets
    ADD COLUMN fees bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT tickets_fees CHECK (fees BETWEEN 0 AND price);

-- What an account has booked, the newest first.
CREATE INDEX bookings_newest ON bookings (user_id, created_at DESC, id DESC);

-- What became of each scan of a ticket at a door. A ticket admits once a turn; an
-- admission that is undone ends its turn.
CREATE TABLE ticket_scans (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ticket_id text NOT NULL REFERENCES tickets,
    turn      int NOT NULL CHECK (turn >= 0), -- how many admissions were undone before
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    result    text NOT NULL CHECK (result IN ('admitted', 'used', 'void', 'pending', 'wrong_event', 'undone')),
    gate      text NOT NULL DEFAULT '',
    account   text NOT NULL,            -- who scanned it, or undid
    request   text NOT NULL DEFAULT '', -- Idempotency-Key: its repeat is the same scan
    reason    text NOT NULL DEFAULT ''  -- why it was undone
);
CREATE UNIQUE INDEX ticket_scans_once_a_turn ON ticket_scans (ticket_id, turn, result) WHERE result IN ('admitted', 'undone');
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ticket_scans FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- +goose Down
DROP TABLE ticket_scans;
DROP INDEX bookings_newest;
ALTER TABLE tickets DROP COLUMN fees;
DROP TABLE event_fees;
