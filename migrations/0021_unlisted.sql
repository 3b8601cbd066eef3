-- +goose Up
-- What nobody is to come upon by a search, such as the copy of a rehearsal.
ALTER TABLE events ADD COLUMN unlisted boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE events DROP COLUMN unlisted;
