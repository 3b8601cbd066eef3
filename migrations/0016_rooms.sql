-- +goose Up
-- Waiting rooms. Who waits is in Redis; what must not be lost with it is here.
CREATE TABLE rooms (
    event_id     text PRIMARY KEY REFERENCES events ON DELETE CASCADE,
    version      bigint NOT NULL DEFAULT 1, -- counts the changes Redis must be told of
    state        text NOT NULL CHECK (state IN ('draw', 'closed', 'open', 'paused', 'over')),
    rate         int NOT NULL CHECK (rate >= 0), -- a minute
    burst        int NOT NULL CHECK (burst > 0),
    cap          int NOT NULL CHECK (cap > 0), -- inside at the same time
    session_ms   bigint NOT NULL CHECK (session_ms > 0),
    joins_at     timestamptz NOT NULL,
    closes_at    timestamptz, -- when the list of the draw freezes; NULL: there is no draw
    opens_at     timestamptz NOT NULL,
    announcement text, -- of the draw: exactly what is published
    seed         bytea, -- secret until drawn_at
    tickets      int, -- on the frozen list
    root         bytea,
    told         bytea, -- by the external source
    key          bytea,
    frozen_at    timestamptz,
    drawn_at     timestamptz,
    serving      bigint NOT NULL DEFAULT 0, -- called at least so far
    last         bigint NOT NULL DEFAULT 0, -- given at least so far, with what is given within two seconds
    created_at   timestamptz NOT NULL DEFAULT now(),
    CHECK (num_nulls(closes_at, announcement, seed) IN (0, 3)),
    CHECK (state <> 'draw' OR closes_at IS NOT NULL),
    CHECK (num_nulls(frozen_at, root, tickets) IN (0, 3)),
    CHECK (num_nulls(drawn_at, key) IN (0, 2) AND (drawn_at IS NULL OR frozen_at IS NOT NULL AND told IS NOT NULL))
);

-- The list of a draw. Once it is frozen none is added and none removed.
CREATE TABLE room_tickets (
    event_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
    ticket   bytea NOT NULL CHECK (length(ticket) = 16),
    nonce    bytea NOT NULL CHECK (length(nonce) = 16),
    rank     int CHECK (rank > 0),
    left_at  timestamptz, -- gave the place up after the list was frozen
    PRIMARY KEY (event_id, ticket)
);

-- Who was let in, and what became of it.
CREATE TABLE room_admissions (
    event_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
    jti      text NOT NULL, -- of the pass
    ticket   bytea NOT NULL,
    user_id  text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    until    timestamptz NOT NULL,
    ended_at timestamptz, -- before its time
    became   text CHECK (became IN ('bought', 'left', 'revoked')),
    PRIMARY KEY (event_id, jti),
    CHECK (num_nulls(ended_at, became) IN (0, 2))
);
CREATE INDEX room_admissions_user ON room_admissions (event_id, user_id);

-- +goose Down
DROP TABLE room_admissions, room_tickets, rooms;
