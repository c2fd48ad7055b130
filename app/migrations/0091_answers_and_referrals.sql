-- What contacts fill in, and where they come from.

-- The answers of a form (WhatsApp Flows).
ALTER TABLE messages ADD COLUMN data jsonb;
-- The advertisement that the contact last came from, as the provider says it.
ALTER TABLE conversations ADD COLUMN referral jsonb;
