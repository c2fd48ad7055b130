-- Stores a new booking.
INSERT INTO bookings (id, workspace_id, contact_id, title, starts_at, ends_at)
VALUES (%(id)s, %(workspace_id)s, %(contact_id)s, %(title)s, %(starts_at)s, %(ends_at)s)
RETURNING status, starts_at, ends_at, created_at
