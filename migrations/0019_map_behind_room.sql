-- +goose Up
-- The map of an event whose room guards it is shown only to who is let in.
ALTER TABLE rooms ADD COLUMN guards_map boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE rooms DROP COLUMN guards_map;
