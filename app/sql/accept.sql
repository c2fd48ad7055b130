-- Stores an accepted write.
INSERT INTO jobs (id, workspace_id, token_id, kind, payload, resource_type, resource_id, trace_id)
VALUES (%(id)s, %(workspace_id)s, %(actor_id)s, %(kind)s, %(payload)s, %(resource_type)s, %(resource_id)s, %(trace_id)s)
RETURNING created_at
