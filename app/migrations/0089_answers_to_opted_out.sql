-- Answers to contacts who have opted out and write all the same.

-- When the contact wrote last, by the provider's clock; null after a message that opts out, until they write again.
ALTER TABLE conversations ADD COLUMN asked_at timestamptz;
