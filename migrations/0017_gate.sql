-- +goose Up
-- What a waiting room asks of who joins, and whom it does not let in.
ALTER TABLE rooms ADD COLUMN codes boolean NOT NULL DEFAULT false; -- a code of the house's
ALTER TABLE rooms ADD COLUMN proof int NOT NULL DEFAULT 0 CHECK (proof >= 0); -- of work: the highest number to be tried; 0: none

-- Which codes were used, and by whom. The first one counts.
CREATE TABLE room_codes (
    event_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
    code     int NOT NULL, -- its serial number
    ticket   bytea NOT NULL CHECK (length(ticket) = 16), -- of the account
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event_id, code)
);

-- Accounts that wait and are not let in, and those that somebody has looked at and
-- trusts: these are not suspected again by themselves.
CREATE TABLE room_suspects (
    event_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
    user_id  text NOT NULL,
    ticket   bytea NOT NULL CHECK (length(ticket) = 16),
    trusted  boolean NOT NULL DEFAULT false,
    because  text NOT NULL CHECK (because IN ('operator', 'limits')),
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event_id, user_id)
);

-- +goose Down
DROP TABLE room_suspects, room_codes;
ALTER TABLE rooms DROP COLUMN codes, DROP COLUMN proof;
