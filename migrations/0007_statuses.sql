-- +goose Up
-- What operators did. A call is written down before it is carried out, and its
-- outcome after it: one without an outcome was cut short, and may have had its
-- effect or not.
CREATE TABLE admin_calls (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    request_id text NOT NULL,
    operator   text NOT NULL,
    address    text NOT NULL,
    method     text NOT NULL,
    path       text NOT NULL,
    event_id   text NOT NULL, -- '': of none
    body       bytea NOT NULL, -- the first of it
    body_bytes int NOT NULL    -- how long all of it was
);
CREATE INDEX admin_calls_event ON admin_calls (event_id, id);

CREATE TABLE admin_outcomes (
    call_id bigint PRIMARY KEY REFERENCES admin_calls,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    status  int NOT NULL,
    code    text NOT NULL -- of a problem; '': of none
);

-- +goose StatementBegin
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_calls FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_outcomes FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- Why a seat is not for sale. These are attributes beside each other, so that
-- taking one away leaves what the others say: status is 'unavailable' as long
-- as one of them closes the seat, unless it is sold.
ALTER TABLE seats
    ADD COLUMN killed text,    -- why; NULL: it is not
    ADD COLUMN killed_by text, -- the operator
    ADD COLUMN off_sale boolean NOT NULL DEFAULT false,
    ADD COLUMN channel text NOT NULL DEFAULT '', -- '': general
    ADD COLUMN channel_closed boolean NOT NULL DEFAULT false; -- now
UPDATE seats SET off_sale = true WHERE status = 'unavailable';
ALTER TABLE seats
    ADD CONSTRAINT seats_killed_by CHECK ((killed IS NULL) = (killed_by IS NULL)),
    ADD CONSTRAINT seats_general_is_open CHECK (channel <> '' OR NOT channel_closed),
    ADD CONSTRAINT seats_closed CHECK (status = 'sold' OR (status = 'unavailable') = (killed IS NOT NULL OR off_sale OR channel_closed));
CREATE INDEX seats_channel ON seats (event_id, channel) WHERE channel <> '';

-- Who may buy which seats when. A channel is closed to the public until it
-- opens: at opens_at, by any worker, or by hand.
CREATE TABLE channels (
    event_id   text NOT NULL REFERENCES events ON DELETE CASCADE,
    name       text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,39}$'),
    opens_at   timestamptz, -- NULL: by hand
    open       boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event_id, name)
);
CREATE INDEX channels_due ON channels (opens_at) WHERE NOT open AND opens_at IS NOT NULL;

-- A hold of the box office has a row from its beginning, so that it outlasts
-- Redis, and the caps of an account are not applied to it.
ALTER TABLE bookings
    ADD COLUMN operator text NOT NULL DEFAULT '', -- who held it for its account; '': its account
    ADD COLUMN note text NOT NULL DEFAULT '';     -- what for

-- +goose Down
ALTER TABLE bookings DROP COLUMN operator, DROP COLUMN note;
DROP TABLE channels;
ALTER TABLE seats DROP COLUMN killed, DROP COLUMN killed_by, DROP COLUMN off_sale, DROP COLUMN channel, DROP COLUMN channel_closed;
DROP TABLE admin_outcomes, admin_calls;
DROP FUNCTION append_only;
