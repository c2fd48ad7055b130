-- Counts the contacts of a workspace with events from identifier `low` (inclusive) to `high` (exclusive) that do not
-- yet count for the month.
SELECT count(DISTINCT contact_id) FROM events
WHERE workspace_id = %(workspace_id)s AND id >= %(low)s AND id < %(high)s AND contact_id IS NOT NULL
    AND kind <> 'contact.deleted' AND NOT EXISTS (
        SELECT FROM active_contacts
        WHERE month = %(month)s AND workspace_id = %(workspace_id)s AND active_contacts.contact_id = events.contact_id)
