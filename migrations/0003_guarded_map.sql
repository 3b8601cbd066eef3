-- +goose Up
-- A guarded map is shown only to who has a session or a ticket.
ALTER TABLE events ADD COLUMN guarded boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE events DROP COLUMN guarded;
