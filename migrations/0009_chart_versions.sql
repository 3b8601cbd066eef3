-- +goose Up
-- The charts an event has had, and from when.
CREATE TABLE event_charts (
    event_id  text NOT NULL REFERENCES events ON DELETE CASCADE,
    version   int NOT NULL CHECK (version > 0),
    chart_sha text NOT NULL REFERENCES charts,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    operator  text NOT NULL DEFAULT '', -- who published it; '': the command line
    PRIMARY KEY (event_id, version)
);
INSERT INTO event_charts (event_id, version, chart_sha, at) SELECT id, 1, chart_sha, created_at FROM events;

-- Which of them is in force, and which of them Redis has been told of.
ALTER TABLE events
    ADD COLUMN chart_version int NOT NULL DEFAULT 1,
    ADD COLUMN chart_told int NOT NULL DEFAULT 1;
CREATE INDEX events_chart_untold ON events (id) WHERE chart_version <> chart_told;

-- A seat that is not in the chart any more keeps its row, and with it its
-- index. That closes it as the other reasons do.
ALTER TABLE seats
    ADD COLUMN dropped boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT seats_closed,
    ADD CONSTRAINT seats_closed CHECK (status = 'sold' OR (status = 'unavailable') = (killed IS NOT NULL OR off_sale OR channel_closed OR dropped)),
    ADD CONSTRAINT seats_dropped_unsold CHECK (NOT dropped OR status = 'unavailable');

-- +goose Down
ALTER TABLE seats DROP CONSTRAINT seats_closed, DROP CONSTRAINT seats_dropped_unsold;
UPDATE seats SET off_sale = true WHERE dropped;
ALTER TABLE seats
    DROP COLUMN dropped,
    ADD CONSTRAINT seats_closed CHECK (status = 'sold' OR (status = 'unavailable') = (killed IS NOT NULL OR off_sale OR channel_closed));
ALTER TABLE events DROP COLUMN chart_version, DROP COLUMN chart_told;
DROP TABLE event_charts;
