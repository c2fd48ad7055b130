-- Answers in forms, and the advertisements that contacts come from.

-- The answers in a form (WhatsApp Flows).
ALTER TABLE messages ADD COLUMN data jsonb;
-- The advertisement that last led the contact here, in the provider's format.
ALTER TABLE conversations ADD COLUMN referral jsonb;
