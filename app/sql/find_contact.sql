-- A contact of a workspace.
SELECT id, workspace_id, external_id, email, phone, first_name, last_name, locale, timezone, tags, custom_fields, opted_out,
    created_at, updated_at
FROM contacts WHERE workspace_id = %s AND id = %s
