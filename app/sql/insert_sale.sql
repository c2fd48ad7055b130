-- Stores a new sale.
INSERT INTO sales (id, workspace_id, contact_id, amount, currency, reference, occurred_at)
VALUES (%(id)s, %(workspace_id)s, %(contact_id)s, %(amount)s, %(currency)s, %(reference)s, %(occurred_at)s)
RETURNING amount, occurred_at, created_at
