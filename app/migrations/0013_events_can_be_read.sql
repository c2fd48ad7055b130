-- Events are listed, and shown with their deliveries.

-- The list without a kind merges the newest of every kind, so that an event costs one entry and not two.
CREATE INDEX events_kind_page ON events (workspace_id, kind, id);
CREATE INDEX deliveries_event ON deliveries (event_id);
