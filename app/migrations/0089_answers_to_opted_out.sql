-- Lets members answer contacts who have opted out and then write.

-- When the contact last wrote, by the provider's clock. Null after a message that opts out, until they write again.
ALTER TABLE conversations ADD COLUMN asked_at timestamptz;
