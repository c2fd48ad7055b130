-- What contacts pay, and what they book.

CREATE TABLE sales (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    -- Null once the contact is deleted: the amount stays for the books.
    contact_id text COLLATE "C",
    -- No scale: it keeps the decimal places it is given, which are those of its currency.
    amount numeric NOT NULL CHECK (amount >= 0 AND amount < 1e15),
    currency text NOT NULL,
    reference text,
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sales_page ON sales (workspace_id, id);
CREATE UNIQUE INDEX sales_reference ON sales (workspace_id, reference);
CREATE INDEX sales_occurred ON sales (workspace_id, occurred_at, id);
CREATE INDEX sales_contact ON sales (contact_id, workspace_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX sales_contact_occurred ON sales (contact_id, workspace_id, occurred_at, id) WHERE contact_id IS NOT NULL;

CREATE TABLE bookings (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    title text NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL CHECK (ends_at > starts_at),
    status text NOT NULL DEFAULT 'booked' CHECK (status IN ('booked', 'cancelled')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bookings_page ON bookings (workspace_id, id);
CREATE INDEX bookings_status ON bookings (workspace_id, status, id);
CREATE INDEX bookings_starts ON bookings (workspace_id, starts_at, id);
CREATE INDEX bookings_status_starts ON bookings (workspace_id, status, starts_at, id);
CREATE INDEX bookings_contact ON bookings (contact_id, workspace_id, id);
CREATE INDEX bookings_contact_starts ON bookings (contact_id, workspace_id, starts_at, id);
