-- +goose Up
-- How many bookings of one account hold seats at a time; and how many holds it
-- has in an hour, before each must wait: cool_down_ms at first, then twice as
-- long each time.
ALTER TABLE events
    ADD COLUMN holds_per_user int NOT NULL DEFAULT 4 CHECK (holds_per_user > 0),
    ADD COLUMN holds_per_hour int NOT NULL DEFAULT 20 CHECK (holds_per_hour > 0),
    ADD COLUMN cool_down_ms bigint NOT NULL DEFAULT 30000 CHECK (cool_down_ms > 0);

-- How often an account's tickets have changed, and up to which change Redis has
-- been told how many there are.
ALTER TABLE buyers
    ADD COLUMN changes int NOT NULL DEFAULT 1,
    ADD COLUMN told int NOT NULL DEFAULT 0;
CREATE INDEX buyers_untold ON buyers (event_id) WHERE changes <> told;

-- +goose Down
DROP INDEX buyers_untold;
ALTER TABLE buyers DROP COLUMN changes, DROP COLUMN told;
ALTER TABLE events DROP COLUMN holds_per_user, DROP COLUMN holds_per_hour, DROP COLUMN cool_down_ms;
