-- +goose Up
-- A booking has a row from its first payment on; before that it lives in its basket.
CREATE TABLE bookings (
    id            text PRIMARY KEY, -- <event>.<token>
    event_id      text NOT NULL REFERENCES events,
    user_id       text NOT NULL,
    state         text NOT NULL CHECK (state IN ('held', 'paying', 'sold', 'refunded', 'lost', 'released', 'expired')),
    seats         int[] NOT NULL,
    areas         jsonb NOT NULL DEFAULT '{}',
    currency      text NOT NULL,
    amount        bigint NOT NULL CHECK (amount >= 0), -- minor units
    quote         jsonb NOT NULL,
    request_hash  text NOT NULL,
    first_held_at timestamptz NOT NULL,
    deadline      timestamptz NOT NULL, -- the hold's end, grace included
    cap_at        timestamptz NOT NULL,
    reason        text NOT NULL DEFAULT '', -- why it was lost
    lost_seats    int[] NOT NULL DEFAULT '{}', -- what the arbiter could not give
    lost_areas    text[] NOT NULL DEFAULT '{}',
    mirror_due    boolean NOT NULL DEFAULT false, -- sold, and Redis has not been told yet
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bookings_over ON bookings (updated_at) WHERE state IN ('sold', 'lost', 'refunded'); -- the audit's
CREATE INDEX bookings_open ON bookings (deadline) WHERE state IN ('held', 'paying');
CREATE INDEX bookings_mirror_due ON bookings (event_id) WHERE mirror_due;
ALTER TABLE seats ADD FOREIGN KEY (booking_id) REFERENCES bookings;

-- One try at paying a booking.
CREATE TABLE attempts (
    id              text PRIMARY KEY, -- also the provider's idempotency key
    booking_id      text NOT NULL REFERENCES bookings,
    state           text NOT NULL CHECK (state IN ('created', 'authorized', 'capturing', 'captured', 'refunded',
                                                   'failed', 'voided', 'auth_expired', 'capture_refused')),
    provider        text NOT NULL,
    provider_ref    text NOT NULL DEFAULT '', -- the provider's id of the payment, once known
    method          text NOT NULL, -- the provider's name for the card, to repeat a call whose answer was lost
    idempotency_key text, -- the shopper's
    request_hash    text NOT NULL,
    currency        text NOT NULL,
    amount          bigint NOT NULL CHECK (amount >= 0),
    void_due        boolean NOT NULL DEFAULT false, -- an authorisation to give back
    reason          text NOT NULL DEFAULT '', -- why it failed or was refused
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    asked_at        timestamptz NOT NULL DEFAULT now(), -- when the provider was last asked about it
    UNIQUE (booking_id, idempotency_key)
);
-- Two tabs, two cards: one of them takes the money.
CREATE UNIQUE INDEX attempts_one_capture ON attempts (booking_id) WHERE state IN ('capturing', 'captured');
CREATE UNIQUE INDEX attempts_provider_ref ON attempts (provider, provider_ref) WHERE provider_ref <> '';
CREATE INDEX attempts_open ON attempts (asked_at) WHERE state IN ('created', 'authorized', 'capturing');

CREATE TABLE tickets (
    id         text PRIMARY KEY,
    event_id   text NOT NULL REFERENCES events,
    booking_id text NOT NULL REFERENCES bookings,
    user_id    text NOT NULL,
    i          int,  -- the seat, or
    area       text, -- the area
    price      bigint NOT NULL CHECK (price >= 0), -- minor units
    state      text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'void')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((i IS NULL) <> (area IS NULL)),
    FOREIGN KEY (event_id, i) REFERENCES seats,
    FOREIGN KEY (event_id, area) REFERENCES areas
);
-- The second guard, independent of the first: one live ticket a seat.
CREATE UNIQUE INDEX tickets_one_a_seat ON tickets (event_id, i) WHERE state = 'live';
CREATE INDEX tickets_booking ON tickets (booking_id);
CREATE INDEX tickets_buyer ON tickets (event_id, user_id) WHERE state = 'live';

-- A row to lock, so that two bookings of one account are counted one after the
-- other.
CREATE TABLE buyers (
    event_id text NOT NULL REFERENCES events,
    user_id  text NOT NULL,
    PRIMARY KEY (event_id, user_id)
);

-- What payment providers told us, each once. A row is written in the
-- transaction of its effect: what is here has been handled.
CREATE TABLE webhook_inbox (
    provider    text NOT NULL,
    event_id    text NOT NULL,
    object      text NOT NULL,
    type        text NOT NULL,
    handled_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (provider, event_id),
    UNIQUE (provider, object, type)
);

-- The sandbox provider's own books. A real provider keeps these elsewhere;
-- nothing but the sandbox reads or writes them.
CREATE TABLE sandbox_payments (
    id              text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    currency        text NOT NULL,
    amount          bigint NOT NULL CHECK (amount >= 0),
    card            text NOT NULL,
    state           text NOT NULL CHECK (state IN ('processing', 'authorized', 'captured', 'failed', 'voided', 'refused')),
    reason          text NOT NULL DEFAULT '',
    decide_at       timestamptz, -- when a payment in processing gets its verdict
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sandbox_payments_undecided ON sandbox_payments (decide_at) WHERE state = 'processing';
CREATE TABLE sandbox_webhooks (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   text NOT NULL, -- repeated when delivered twice on purpose
    payment_id text NOT NULL REFERENCES sandbox_payments,
    type       text NOT NULL,
    due_at     timestamptz NOT NULL DEFAULT now(),
    tries      int NOT NULL DEFAULT 0,
    sent_at    timestamptz
);
CREATE INDEX sandbox_webhooks_due ON sandbox_webhooks (due_at) WHERE sent_at IS NULL;

-- +goose Down
ALTER TABLE seats DROP CONSTRAINT seats_booking_id_fkey;
DROP TABLE sandbox_webhooks, sandbox_payments, webhook_inbox, buyers, tickets, attempts, bookings;
