-- Opens a segment that begins with a contact about to be stored, if the newest segment is full; but not if a stored
-- contact has a higher identifier, because that contact would change its segment.
INSERT INTO contact_segments (workspace_id, number, from_id)
SELECT %(workspace_id)s, newest.number + 1, %(id)s
FROM (
    SELECT number, from_id FROM contact_segments WHERE workspace_id = %(workspace_id)s
    UNION ALL SELECT 0, ''
    ORDER BY number DESC LIMIT 1) AS newest
WHERE NOT EXISTS (SELECT FROM contacts WHERE workspace_id = %(workspace_id)s AND id >= %(id)s)
    AND %(size)s = (
        SELECT count(*) FROM (
            SELECT FROM contacts WHERE workspace_id = %(workspace_id)s AND id >= newest.from_id LIMIT %(size)s) AS held)
