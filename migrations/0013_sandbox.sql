-- +goose Up
-- More ways for the sandbox to misbehave.
ALTER TABLE sandbox_payments DROP CONSTRAINT sandbox_payments_state_check;
ALTER TABLE sandbox_payments ADD CONSTRAINT sandbox_payments_state_check
    CHECK (state IN ('processing', 'authorized', 'captured', 'failed', 'voided', 'expired', 'refused'));
ALTER TABLE sandbox_payments
    ADD COLUMN capture_before timestamptz, -- when the authorisation lapses; NULL: never
    ADD COLUMN captures int NOT NULL DEFAULT 0, -- how often its capture was tried
    ADD COLUMN back_at timestamptz; -- before that no call about it is answered; NULL: each is
CREATE INDEX sandbox_payments_lapsing ON sandbox_payments (capture_before) WHERE state = 'authorized';

ALTER TABLE sandbox_refunds ADD COLUMN settle_at timestamptz; -- when a pending one is decided
CREATE INDEX sandbox_refunds_pending ON sandbox_refunds (settle_at) WHERE state = 'pending';
ALTER TABLE sandbox_webhooks ADD COLUMN step text NOT NULL DEFAULT ''; -- which refund it is about

-- +goose Down
ALTER TABLE sandbox_webhooks DROP COLUMN step;
DROP INDEX sandbox_refunds_pending;
ALTER TABLE sandbox_refunds DROP COLUMN settle_at;
DROP INDEX sandbox_payments_lapsing;
ALTER TABLE sandbox_payments DROP COLUMN capture_before, DROP COLUMN captures, DROP COLUMN back_at;
UPDATE sandbox_payments SET state = 'voided' WHERE state = 'expired';
ALTER TABLE sandbox_payments DROP CONSTRAINT sandbox_payments_state_check;
ALTER TABLE sandbox_payments ADD CONSTRAINT sandbox_payments_state_check
    CHECK (state IN ('processing', 'authorized', 'captured', 'failed', 'voided', 'refused'));
