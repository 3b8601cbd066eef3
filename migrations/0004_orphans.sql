-- +goose Up
-- What becomes of a choice by hand that leaves a single seat beside it.
ALTER TABLE events ADD COLUMN orphans text NOT NULL DEFAULT 'warn' CHECK (orphans IN ('allow', 'warn', 'refuse'));

-- +goose Down
ALTER TABLE events DROP COLUMN orphans;
