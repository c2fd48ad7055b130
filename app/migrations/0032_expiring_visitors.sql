-- `expires_at`: when a visitor is looked at that may have uploaded a file without a message; null once it has a contact.
ALTER TABLE visitors ADD COLUMN expires_at timestamptz DEFAULT now() + interval '1 day';
CREATE INDEX visitors_expired ON visitors (expires_at) WHERE expires_at IS NOT NULL;

-- A message that its provider asked to wait is due later, and those behind it in the conversation wait for it.
ALTER TABLE conversations DROP COLUMN paused_until;
