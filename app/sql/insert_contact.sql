-- Stores a new contact.
INSERT INTO contacts (id, workspace_id, external_id, email, phone, first_name, last_name, locale, timezone, tags,
    custom_fields, opted_out)
VALUES (%(id)s, %(workspace_id)s, %(external_id)s, %(email)s, %(phone)s, %(first_name)s, %(last_name)s, %(locale)s,
    %(timezone)s, %(tags)s, %(custom_fields)s, %(opted_out)s)
RETURNING created_at, updated_at
