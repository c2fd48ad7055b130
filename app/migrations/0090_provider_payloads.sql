-- The provider's documents for messages that Bellhop cannot show completely.

ALTER TABLE messages ADD COLUMN provider_payload jsonb;
CREATE INDEX messages_provider_payloads ON messages (created_at) WHERE provider_payload IS NOT NULL;
