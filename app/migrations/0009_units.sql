-- What the units of work and the erasure of contacts need.

-- How far a long write is, which is done in parts; the kind of write says what it means.
ALTER TABLE jobs ADD COLUMN progress json;

-- An erasure goes through what is said of a contact in the order of the identifiers.
DROP INDEX events_contact;
CREATE INDEX events_contact ON events (contact_id, id) WHERE contact_id IS NOT NULL;
DROP INDEX deliveries_contact;
CREATE INDEX deliveries_contact ON deliveries (contact_id, id) WHERE contact_id IS NOT NULL;
