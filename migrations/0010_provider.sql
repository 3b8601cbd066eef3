-- +goose Up
-- What a provider says of a payment besides its state.
ALTER TABLE attempts
    ADD COLUMN card text NOT NULL DEFAULT '', -- the same for every payment with one card; '': unknown
    ADD COLUMN capture_before timestamptz, -- when the authorisation lapses; NULL: unknown
    ADD COLUMN refunded bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0), -- of what was captured, given back so far
    ADD COLUMN dispute text NOT NULL DEFAULT ''; -- how a dispute about it stands; '': there is none

-- Money that was taken and sells nothing goes back.
ALTER TABLE attempts DROP CONSTRAINT attempts_state_check;
ALTER TABLE attempts ADD CONSTRAINT attempts_state_check CHECK (state IN ('created', 'authorized', 'capturing', 'captured',
    'refunded', 'failed', 'voided', 'auth_expired', 'capture_refused', 'refunding', 'refund_failed'));
DROP INDEX attempts_open;
CREATE INDEX attempts_open ON attempts (asked_at) WHERE state IN ('created', 'authorized', 'capturing', 'refunding');

-- How many tickets one card may pay for; 0: as many as it likes. The row of a
-- card is there to be locked, so that two bookings are counted one after the other.
ALTER TABLE events ADD COLUMN seats_per_card int NOT NULL DEFAULT 0 CHECK (seats_per_card >= 0);
CREATE TABLE cards (
    event_id text NOT NULL REFERENCES events,
    card     text NOT NULL,
    PRIMARY KEY (event_id, card)
);
CREATE INDEX attempts_card ON attempts (card) WHERE card <> '' AND state IN ('capturing', 'captured');

-- The sandbox's own.
ALTER TABLE sandbox_payments ADD COLUMN refunded bigint NOT NULL DEFAULT 0 CHECK (refunded BETWEEN 0 AND amount);
CREATE TABLE sandbox_refunds (
    idempotency_key text PRIMARY KEY,
    id              text NOT NULL UNIQUE,
    payment_id      text NOT NULL REFERENCES sandbox_payments,
    amount          bigint NOT NULL CHECK (amount > 0),
    state           text NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    reason          text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE sandbox_refunds;
ALTER TABLE sandbox_payments DROP COLUMN refunded;
DROP INDEX attempts_card;
DROP TABLE cards;
ALTER TABLE events DROP COLUMN seats_per_card;
UPDATE attempts SET state = 'refunded' WHERE state IN ('refunding', 'refund_failed');
DROP INDEX attempts_open;
CREATE INDEX attempts_open ON attempts (asked_at) WHERE state IN ('created', 'authorized', 'capturing');
ALTER TABLE attempts DROP CONSTRAINT attempts_state_check;
ALTER TABLE attempts ADD CONSTRAINT attempts_state_check CHECK (state IN ('created', 'authorized', 'capturing', 'captured',
    'refunded', 'failed', 'voided', 'auth_expired', 'capture_refused'));
ALTER TABLE attempts DROP COLUMN card, DROP COLUMN capture_before, DROP COLUMN refunded, DROP COLUMN dispute;
