-- Whether an automation exists and is published, whether a contact exists, and the kinds of queued writes that may
-- change what is missing. One statement: it sees a write that ends meanwhile either in the queue or by its effect.
SELECT automations.id IS NOT NULL, automations.version IS NOT NULL,
    EXISTS (SELECT FROM contacts WHERE id = %(contact_id)s AND workspace_id = %(workspace_id)s),
    CASE WHEN automations.version IS NULL THEN ARRAY(
        SELECT kind FROM jobs
        WHERE resource_id = %(automation_id)s AND due_at IS NOT NULL AND workspace_id = %(workspace_id)s)
    ELSE '{}' END
FROM (SELECT) AS once
LEFT JOIN automations ON automations.id = %(automation_id)s AND automations.workspace_id = %(workspace_id)s
