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
    lost_seats    int[] NOT NULL DEFAULT '{}', -- what the arbiter could not give
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bookings_open ON bookings (event_id, deadline) WHERE state IN ('held', 'paying');

-- One try at paying a booking.
CREATE TABLE attempts (
    id              text PRIMARY KEY, -- also the provider's idempotency key
    booking_id      text NOT NULL REFERENCES bookings,
    state           text NOT NULL CHECK (state IN ('created', 'authorized', 'capturing', 'captured', 'refunded',
                                                   'failed', 'voided', 'auth_expired', 'capture_refused')),
    provider        text NOT NULL,
    provider_ref    text NOT NULL DEFAULT '', -- the provider's id of the payment, once known
    idempotency_key text, -- the shopper's
    request_hash    text NOT NULL,
    currency        text NOT NULL,
    amount          bigint NOT NULL CHECK (amount >= 0),
    void_due        boolean NOT NULL DEFAULT false, -- an authorisation to give back
    reason          text NOT NULL DEFAULT '', -- why it failed or was refused
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (booking_id, idempotency_key)
);
-- Two tabs, two cards: one of them takes the money.
CREATE UNIQUE INDEX attempts_one_capture ON attempts (booking_id) WHERE state IN ('capturing', 'captured');
CREATE UNIQUE INDEX attempts_provider_ref ON attempts (provider, provider_ref) WHERE provider_ref <> '';
CREATE INDEX attempts_open ON attempts (updated_at) WHERE state IN ('created', 'authorized', 'capturing');

CREATE TABLE tickets (
    id         text PRIMARY KEY,
    event_id   text NOT NULL REFERENCES events,
    booking_id text NOT NULL REFERENCES bookings,
    user_id    text NOT NULL,
    i          int,  -- the seat, or
    area       text, -- the area
    price      bigint NOT NULL,
    state      text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'void')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((i IS NULL) <> (area IS NULL))
);
-- The second guard, independent of the first: one live ticket a seat.
CREATE UNIQUE INDEX tickets_one_a_seat ON tickets (event_id, i) WHERE state = 'live';
CREATE INDEX tickets_booking ON tickets (booking_id);

-- What payment providers told us, each once.
CREATE TABLE webhook_inbox (
    provider    text NOT NULL,
    event_id    text NOT NULL,
    object      text NOT NULL,
    type        text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    handled_at  timestamptz,
    PRIMARY KEY (provider, event_id),
    UNIQUE (provider, object, type)
);

-- The sandbox provider's own books. A real provider keeps these elsewhere;
-- nothing but the sandbox reads or writes them.
CREATE TABLE sandbox_payments (
    id              text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    currency        text NOT NULL,
    amount          bigint NOT NULL,
    card            text NOT NULL,
    state           text NOT NULL CHECK (state IN ('processing', 'authorized', 'captured', 'failed', 'voided', 'refunded')),
    decide_at       timestamptz, -- when a payment in processing gets its verdict
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE sandbox_webhooks (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   text NOT NULL, -- repeated when delivered twice on purpose
    payment_id text NOT NULL REFERENCES sandbox_payments,
    type       text NOT NULL,
    due_at     timestamptz NOT NULL,
    tries      int NOT NULL DEFAULT 0,
    sent_at    timestamptz
);
CREATE INDEX sandbox_webhooks_due ON sandbox_webhooks (due_at) WHERE sent_at IS NULL;

-- +goose Down
DROP TABLE sandbox_webhooks, sandbox_payments, webhook_inbox, tickets, attempts, bookings;
