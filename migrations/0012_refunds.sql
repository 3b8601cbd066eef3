-- +goose Up
-- Money of sold tickets that goes back. A row is written before a provider hears
-- of it.
CREATE TABLE refunds (
    id           text PRIMARY KEY, -- also the provider's idempotency key
    event_id     text NOT NULL REFERENCES events,
    booking_id   text NOT NULL REFERENCES bookings,
    attempt_id   text NOT NULL REFERENCES attempts,
    state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
    tickets      text[] NOT NULL CHECK (cardinality(tickets) > 0),
    currency     text NOT NULL,
    amount       bigint NOT NULL CHECK (amount >= 0), -- what the tickets cost together, minor units
    seats        text NOT NULL CHECK (seats IN ('on_sale', 'killed')), -- what becomes of them
    reason       text NOT NULL,
    operator     text NOT NULL,
    cancels      boolean NOT NULL DEFAULT false, -- because the event is cancelled
    outside      boolean NOT NULL DEFAULT false, -- given back at the provider and not by us, which never asks about it
    provider_ref text NOT NULL DEFAULT '', -- the provider's id of it, once known
    failure      text NOT NULL DEFAULT '', -- why it failed
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    asked_at     timestamptz NOT NULL DEFAULT now() -- when the provider was last asked about it
);
CREATE INDEX refunds_booking ON refunds (booking_id);
CREATE INDEX refunds_pending ON refunds (asked_at) WHERE state = 'pending';
CREATE INDEX refunds_cancelling ON refunds (event_id) WHERE cancels;

-- Of a live ticket the refund that is under way; of a void one the one that
-- took it back.
ALTER TABLE tickets ADD COLUMN refund_id text REFERENCES refunds;

ALTER TABLE ticket_scans DROP CONSTRAINT ticket_scans_result_check;
ALTER TABLE ticket_scans ADD CONSTRAINT ticket_scans_result_check CHECK (result IN
    ('admitted', 'used', 'void', 'refunding', 'refunded', 'pending', 'wrong_event', 'undone'));

-- An event that will not take place. From there no way leads back.
ALTER TABLE events DROP CONSTRAINT events_state_check;
ALTER TABLE events ADD CONSTRAINT events_state_check CHECK (state IN ('closed', 'open', 'cancelled'));
CREATE TABLE cancellations (
    event_id   text PRIMARY KEY REFERENCES events,
    reason     text NOT NULL,
    operator   text NOT NULL,
    refund     boolean NOT NULL,
    per_minute int NOT NULL CHECK (per_minute >= 0), -- how many bookings are refunded in a minute
    paced_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- when the next one is due
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX bookings_sold ON bookings (event_id, id) WHERE state = 'sold';

-- A closed area sells nothing more, whatever it has sold.
ALTER TABLE areas ADD COLUMN closed boolean NOT NULL DEFAULT false;
ALTER TABLE areas ADD COLUMN free int GENERATED ALWAYS AS (CASE WHEN closed THEN 0 ELSE capacity - sold END) STORED;

-- +goose Down
ALTER TABLE areas DROP COLUMN free;
ALTER TABLE areas DROP COLUMN closed;
DROP INDEX bookings_sold;
DROP TABLE cancellations;
UPDATE events SET state = 'closed' WHERE state = 'cancelled';
ALTER TABLE events DROP CONSTRAINT events_state_check;
ALTER TABLE events ADD CONSTRAINT events_state_check CHECK (state IN ('closed', 'open'));
ALTER TABLE ticket_scans DROP CONSTRAINT ticket_scans_result_check;
ALTER TABLE ticket_scans ADD CONSTRAINT ticket_scans_result_check CHECK (result IN
    ('admitted', 'used', 'void', 'pending', 'wrong_event', 'undone')) NOT VALID;
ALTER TABLE tickets DROP COLUMN refund_id;
DROP TABLE refunds;
