-- +goose Up
-- From when on a step of a sale counts as slow, so that a room lets in fewer. 0: it
-- never does, as in rooms that were made before.
ALTER TABLE rooms
    ADD COLUMN slow_hold_ms     int NOT NULL DEFAULT 0 CHECK (slow_hold_ms >= 0),
    ADD COLUMN slow_checkout_ms int NOT NULL DEFAULT 0 CHECK (slow_checkout_ms >= 0),
    ADD COLUMN slow_failures    int NOT NULL DEFAULT 0 CHECK (slow_failures BETWEEN 0 AND 100); -- of a hundred calls

-- +goose Down
ALTER TABLE rooms DROP COLUMN slow_hold_ms, DROP COLUMN slow_checkout_ms, DROP COLUMN slow_failures;
