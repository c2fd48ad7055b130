-- Stores a new contact, in the segment that its identifier is of.
INSERT INTO contacts (id, workspace_id, external_id, email, phone, first_name, last_name, locale, timezone, tags,
    custom_fields, opted_out, segment)
VALUES (%(id)s, %(workspace_id)s, %(external_id)s, %(email)s, %(phone)s, %(first_name)s, %(last_name)s, %(locale)s,
    %(timezone)s, %(tags)s, %(custom_fields)s, %(opted_out)s,
    coalesce((
        SELECT number FROM contact_segments WHERE workspace_id = %(workspace_id)s AND from_id <= %(id)s
        ORDER BY number DESC LIMIT 1), 0))
RETURNING created_at, updated_at
