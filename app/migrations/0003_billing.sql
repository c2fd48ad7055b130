-- Billing: the plan of a workspace, its usage, and an invoice for each past month.
--
-- Months and days are calendar months and days in UTC; a month is identified by its first day.

-- The plan of a workspace from that month on. One without a row has the default plan.
CREATE TABLE subscriptions (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    since date NOT NULL CHECK (extract(day FROM since) = 1),
    plan text NOT NULL,
    PRIMARY KEY (workspace_id, since)
);

CREATE TABLE usage_days (
    workspace_id text COLLATE "C" NOT NULL,
    day date NOT NULL,
    meter text NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, day, meter)
);

-- Everything created before that moment is counted in `usage_days`.
CREATE TABLE usage_progress (
    meter text PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- The contacts counted for the month, so that each counts once. Deleted when the month is over.
CREATE TABLE active_contacts (
    month date NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (month, workspace_id, contact_id)
);

-- The months since billing began, up to the one being closed, which is done up to the workspace `position`.
CREATE TABLE billing_periods (
    month date PRIMARY KEY,
    position text COLLATE "C" NOT NULL DEFAULT '',
    closed_at timestamptz
);

-- Workspaces skipped when a month was closed, because their plan is unknown; they are retried.
CREATE TABLE unbilled (
    month date NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    PRIMARY KEY (month, workspace_id)
);

CREATE TABLE invoices (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    number bigint NOT NULL UNIQUE,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open')),
    plan text NOT NULL,
    currency text NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    lines json NOT NULL,
    total numeric(14, 2) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (workspace_id, period_start)
);
CREATE INDEX invoices_page ON invoices (workspace_id, id);

-- To count the events of one workspace in the last minutes, which usage_days does not have yet.
CREATE INDEX events_of_contacts ON events (workspace_id, id) WHERE contact_id IS NOT NULL;
