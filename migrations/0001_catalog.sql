-- +goose Up
-- Charts are immutable and named by the SHA-256 of the bytes served.
CREATE TABLE charts (
    sha        text PRIMARY KEY CHECK (sha ~ '^[0-9a-f]{64}$'),
    name       text NOT NULL,
    seats      int NOT NULL CHECK (seats >= 0), -- size of the index space
    body       bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE events (
    id                text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    name              text NOT NULL,
    venue             text NOT NULL,
    zone              text NOT NULL, -- IANA
    starts_at         timestamptz NOT NULL,
    opens_at          timestamptz NOT NULL,
    chart_sha         text NOT NULL REFERENCES charts,
    mode              text NOT NULL CHECK (mode IN ('hot', 'ordinary')),
    state             text NOT NULL DEFAULT 'closed' CHECK (state IN ('closed', 'open')),
    currency          text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    hold_ms           bigint NOT NULL CHECK (hold_ms > 0),
    pay_ms            bigint NOT NULL CHECK (pay_ms > 0),
    cap_ms            bigint NOT NULL CHECK (cap_ms >= hold_ms),
    grace_ms          bigint NOT NULL CHECK (grace_ms >= 0),
    seats_per_booking int NOT NULL CHECK (seats_per_booking > 0),
    seats_per_user    int NOT NULL CHECK (seats_per_user > 0),
    created_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE prices (
    event_id text NOT NULL REFERENCES events ON DELETE CASCADE,
    category text NOT NULL,
    amount   bigint NOT NULL CHECK (amount >= 0), -- minor units
    PRIMARY KEY (event_id, category)
);

-- One row a seat. status changes in one place only: the arbiter of checkout.
CREATE TABLE seats (
    event_id   text NOT NULL REFERENCES events ON DELETE CASCADE,
    i          int NOT NULL CHECK (i >= 0),
    ticket_id  text NOT NULL,
    category   text NOT NULL,
    status     text NOT NULL DEFAULT 'available' CHECK (status IN ('available', 'sold', 'unavailable')),
    booking_id text, -- who has it, when sold
    mirror_due boolean NOT NULL DEFAULT false, -- Redis has not been told yet
    PRIMARY KEY (event_id, i),
    UNIQUE (event_id, ticket_id),
    CHECK ((status = 'sold') = (booking_id IS NOT NULL))
);
CREATE INDEX seats_mirror_due ON seats (event_id) WHERE mirror_due;

CREATE TABLE areas (
    event_id   text NOT NULL REFERENCES events ON DELETE CASCADE,
    area       text NOT NULL,
    category   text NOT NULL,
    capacity   int NOT NULL CHECK (capacity >= 0),
    sold       int NOT NULL DEFAULT 0 CHECK (sold >= 0 AND sold <= capacity),
    mirror_due boolean NOT NULL DEFAULT false,
    PRIMARY KEY (event_id, area)
);
CREATE INDEX areas_mirror_due ON areas (event_id) WHERE mirror_due;

-- +goose Down
DROP TABLE areas, seats, prices, events, charts;
