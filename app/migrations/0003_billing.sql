-- Billing: the plan of a workspace, what it used, and an invoice for each month that is over.
--
-- Months and days are of the calendar, in UTC; a month is named by its first day.

-- From that month on, the workspace has that plan. One without a row has the default plan.
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

-- What was made before that moment is in `usage_days`.
CREATE TABLE usage_progress (
    meter text PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- The contacts that are counted for the month, so that each is counted once. They go when the month is over.
CREATE TABLE active_contacts (
    month date NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (month, workspace_id, contact_id)
);

-- The months since billing began, up to the one that is not closed yet; that has been done up to the workspace `position`.
CREATE TABLE billing_periods (
    month date PRIMARY KEY,
    position text COLLATE "C" NOT NULL DEFAULT '',
    closed_at timestamptz
);

-- Workspaces that the closing of a month left out, because their plan was not known; they are tried again.
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

-- For what happened to contacts of one workspace in the last minutes, which is not counted yet.
CREATE INDEX events_of_contacts ON events (workspace_id, id) WHERE contact_id IS NOT NULL;
