-- Stores a changed contact.
UPDATE contacts
SET external_id = %(external_id)s, email = %(email)s, phone = %(phone)s, first_name = %(first_name)s,
    last_name = %(last_name)s, locale = %(locale)s, timezone = %(timezone)s, tags = %(tags)s,
    custom_fields = %(custom_fields)s, opted_out = %(opted_out)s, updated_at = now()
WHERE id = %(id)s
RETURNING created_at, updated_at
