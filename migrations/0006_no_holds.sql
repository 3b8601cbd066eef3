-- +goose Up
-- Since when an event takes bookings without holds, because Redis answers no
-- node; NULL while seats are held.
ALTER TABLE events ADD COLUMN unheld_since timestamptz;

-- A booking has a row from its first payment on, or, taken without a hold, from
-- the beginning.
ALTER TABLE bookings ADD COLUMN holds boolean NOT NULL DEFAULT true;
CREATE INDEX bookings_of_account ON bookings (event_id, user_id) WHERE state IN ('held', 'paying');

-- The nodes that take bookings, and when Redis answered each of them last.
CREATE TABLE nodes (
    id          text PRIMARY KEY,
    redis_ok_at timestamptz NOT NULL,
    silent      text[] NOT NULL -- events it did not answer for: those of a dead part of a cluster
);

-- +goose Down
DROP TABLE nodes;
DROP INDEX bookings_of_account;
ALTER TABLE bookings DROP COLUMN holds;
ALTER TABLE events DROP COLUMN unheld_since;
