-- Dates of contacts that a trigger by time cannot read are known, so that people can be told of them.

-- The custom field of the contact holds no date that can be read; `at` is null.
ALTER TABLE waiting_starts ADD COLUMN is_unreadable boolean NOT NULL DEFAULT false;
CREATE INDEX waiting_starts_unreadable ON waiting_starts (automation_id, key) WHERE is_unreadable;

-- Triggers look at all contacts again: they find these dates, and those that only newer versions can read.
UPDATE timed_triggers SET scanned_to = '', begins_at = NULL WHERE NOT is_ended AND key::jsonb ? 'date';
