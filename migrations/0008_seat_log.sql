-- +goose Up
-- The seat log: what the log of changes in Redis said of each seat, kept after
-- that has forgotten it. No foreign key: it would look up the event for every
-- row, and every row is of an event that has a position.
CREATE TABLE seat_log (
    event_id text NOT NULL,
    i        int NOT NULL,
    n        bigint NOT NULL,      -- number of the change
    at       timestamptz NOT NULL, -- by the clock of Redis
    until    timestamptz,          -- when the hold ends by itself
    seen     boolean NOT NULL,     -- found so at n after a gap; when it became so is not known
    what     text NOT NULL CHECK (what IN ('held', 'given_back', 'swapped', 'lapsed', 'restored', 'released', 'sold', 'closed')),
    holder   text,                 -- token of who holds it or gave it back, or the six letters of it that are known
    PRIMARY KEY (event_id, i, n)
);

-- Where it is not known what happened: after from_n, and up to to_n. What was
-- found at to_n to differ is in seat_log, as seen.
CREATE TABLE seat_log_gaps (
    event_id text NOT NULL,
    from_n   bigint NOT NULL, -- 0: nothing was recorded before
    from_at  timestamptz,
    to_n     bigint NOT NULL,
    to_at    timestamptz NOT NULL,
    reason   text NOT NULL CHECK (reason IN ('began', 'trimmed', 'fork', 'emptied', 'reset', 'unreadable')),
    PRIMARY KEY (event_id, to_n)
);

-- Up to which change an event is recorded. Whoever records locks its row.
CREATE TABLE seat_log_positions (
    event_id text PRIMARY KEY REFERENCES events,
    n        bigint NOT NULL DEFAULT 0, -- 0: nothing yet
    at       timestamptz
) WITH (fillfactor = 50); -- room beside a row for its next versions

-- History is added to and never changed. The one way to lose some is to forget
-- an event that is long over, all of it.
-- +goose StatementBegin
CREATE FUNCTION seat_log_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.event_id = current_setting('seatcast.forget', true) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '% is only added to', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

-- forget_seat_log removes the history of an event that began more than 30 days
-- ago, or is no more, and returns how many entries it had.
CREATE FUNCTION forget_seat_log(event text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    entries bigint;
BEGIN
    IF EXISTS (SELECT FROM events WHERE id = event AND starts_at > now() - interval '30 days') THEN
        RAISE EXCEPTION 'event % is recorded until 30 days after its start', event USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM set_config('seatcast.forget', event, true);
    DELETE FROM seat_log WHERE event_id = event;
    GET DIAGNOSTICS entries = ROW_COUNT;
    DELETE FROM seat_log_gaps WHERE event_id = event;
    DELETE FROM seat_log_positions WHERE event_id = event;
    PERFORM set_config('seatcast.forget', '', true);
    RETURN entries;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON seat_log FOR EACH ROW EXECUTE FUNCTION seat_log_stays();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON seat_log_gaps FOR EACH ROW EXECUTE FUNCTION seat_log_stays();
CREATE TRIGGER stays_whole BEFORE TRUNCATE ON seat_log FOR EACH STATEMENT EXECUTE FUNCTION seat_log_stays();
CREATE TRIGGER stays_whole BEFORE TRUNCATE ON seat_log_gaps FOR EACH STATEMENT EXECUTE FUNCTION seat_log_stays();

-- The history of a seat names every ticket it had. Live ones have an index.
CREATE INDEX tickets_void_of_seat ON tickets (event_id, i) WHERE state = 'void';

-- +goose Down
DROP INDEX tickets_void_of_seat;
DROP TABLE seat_log_positions, seat_log_gaps, seat_log;
DROP FUNCTION forget_seat_log, seat_log_stays;
