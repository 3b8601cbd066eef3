-- +goose Up
-- Who gave a place up, or had it taken: none they were given before counts any more.
-- Whose ticket is on a frozen list has it in room_tickets.left_at.
CREATE TABLE room_left (
    event_id text NOT NULL REFERENCES rooms ON DELETE CASCADE,
    ticket   bytea NOT NULL CHECK (length(ticket) = 16),
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event_id, ticket)
);

-- +goose Down
DROP TABLE room_left;
