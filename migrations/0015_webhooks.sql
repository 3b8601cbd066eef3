-- +goose Up
-- Which other systems are told what happens, and of what.
CREATE TABLE webhooks (
    id            text PRIMARY KEY,
    url           text NOT NULL,
    types         text[], -- NULL: all
    events        text[], -- NULL: all
    enabled       boolean NOT NULL DEFAULT true,
    disabled_why  text NOT NULL DEFAULT '', -- '': an operator did it
    failing_since timestamptz, -- when the first try failed after the last that did not; NULL: none has
    created_at    timestamptz NOT NULL DEFAULT now()
);

-- What their messages are signed with, encrypted. All that have not ended sign.
CREATE TABLE webhook_secrets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id text NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    sealed     bytea NOT NULL,
    ends_at    timestamptz -- NULL: another has not replaced it
);
CREATE UNIQUE INDEX webhook_secrets_in_force ON webhook_secrets (webhook_id) WHERE ends_at IS NULL;
CREATE INDEX webhook_secrets_webhook ON webhook_secrets (webhook_id);

-- What there is to tell, written by the transaction of what happened.
CREATE TABLE webhook_messages (
    id       text PRIMARY KEY, -- the same in every try
    type     text NOT NULL,
    event_id text NOT NULL, -- '': of none
    body     text NOT NULL, -- what is signed and sent
    at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_messages_at ON webhook_messages (at);

-- One message to one of them.
CREATE TABLE webhook_deliveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id text NOT NULL REFERENCES webhook_messages ON DELETE CASCADE,
    webhook_id text NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    state      text NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    turn       int NOT NULL DEFAULT 0, -- a job of another turn is out of date and does nothing
    tries      int NOT NULL DEFAULT 0, -- since it was last asked for
    due_at     timestamptz NOT NULL DEFAULT now(), -- of a pending one: when it is tried next
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, id);
CREATE INDEX webhook_deliveries_message ON webhook_deliveries (message_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE state = 'pending';

CREATE TABLE webhook_tries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id bigint NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    status      int NOT NULL, -- 0: there was no answer
    ms          int NOT NULL, -- how long it took
    error       text NOT NULL,
    answer      text NOT NULL -- the first of it
);
CREATE INDEX webhook_tries_delivery ON webhook_tries (delivery_id, id);

-- Events that have sold what there was to sell, and were said to.
CREATE TABLE sold_out (
    event_id text PRIMARY KEY REFERENCES events ON DELETE CASCADE,
    at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX seats_for_sale ON seats (event_id) WHERE status = 'available';

-- +goose Down
DROP INDEX seats_for_sale;
DROP TABLE sold_out, webhook_tries, webhook_deliveries, webhook_messages, webhook_secrets, webhooks;
