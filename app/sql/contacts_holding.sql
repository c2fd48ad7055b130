-- The contacts of a workspace that hold any of the identifiers; one that is not given is null, and matches nothing.
-- Run for each contact that is written, where building it with peewee took longer than PostgreSQL needs to answer it.
SELECT id, workspace_id, external_id, email, phone, first_name, last_name, locale, timezone, tags, custom_fields,
    opted_out, created_at, updated_at
FROM contacts
WHERE workspace_id = %s AND (external_id = %s OR lower(email) = lower(%s) OR phone = %s)
