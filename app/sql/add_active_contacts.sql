-- Adds contacts with events from identifier `low` (inclusive) to `high` (exclusive) to the usage of that day, unless
-- they already count for the month. Returns nothing; changes one row per workspace with new ones.
WITH active AS (
    SELECT DISTINCT workspace_id, contact_id FROM events
    WHERE id >= %(low)s AND id < %(high)s AND contact_id IS NOT NULL AND kind <> 'contact.deleted'
), first AS (
    INSERT INTO active_contacts (month, workspace_id, contact_id)
    SELECT %(month)s, workspace_id, contact_id FROM active
    ON CONFLICT DO NOTHING
    RETURNING workspace_id
)
INSERT INTO usage_days (workspace_id, day, meter, amount)
SELECT workspace_id, %(day)s, %(meter)s, count(*) FROM first GROUP BY workspace_id
ON CONFLICT (workspace_id, day, meter) DO UPDATE SET amount = usage_days.amount + excluded.amount
