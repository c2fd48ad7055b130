-- Reports of the inbox: figures by hour, day and month, counted after the fact.

-- When conversations began, were closed and were opened again, until that is counted. `labels`, `assignee_id`: as they
-- were then.
CREATE TABLE conversation_transitions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    assignee_id text COLLATE "C",
    labels text[] NOT NULL,
    kind text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX conversation_transitions_at ON conversation_transitions (at);

-- Within its transaction, a conversation opens before all else and closes after it. Erasing a contact ends its
-- conversations, which counts for nothing.
CREATE FUNCTION note_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_transitions (workspace_id, conversation_id, channel_id, assignee_id, labels, kind, at)
    VALUES (NEW.workspace_id, NEW.id, NEW.channel_id, NEW.assignee_id, NEW.labels,
        CASE WHEN TG_OP = 'INSERT' THEN 'began'
            WHEN NEW.status = 'open' THEN 'reopened'
            WHEN EXISTS (SELECT FROM contacts WHERE id = NEW.contact_id) THEN 'closed'
            ELSE 'erased' END,
        CASE WHEN NEW.status = 'open' THEN now() ELSE clock_timestamp() END);
    RETURN NULL;
END $$;
CREATE TRIGGER note_beginning AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION note_transition();
CREATE TRIGGER note_opening_or_closing AFTER UPDATE ON conversations FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION note_transition();

-- What is known of the current opening of a conversation, from its beginning or reopening until it is closed.
CREATE TABLE conversation_openings (
    conversation_id text COLLATE "C" PRIMARY KEY,
    opened_at timestamptz NOT NULL,
    first_received_at timestamptz,
    is_answered boolean NOT NULL,
    closed_at timestamptz
);
CREATE INDEX conversation_openings_closed ON conversation_openings (closed_at) WHERE closed_at IS NOT NULL;

-- Messages that were not sent by Bellhop, in the order in which they were stored. `messages_sent` has the others.
CREATE INDEX messages_noted ON messages (created_at) WHERE direction = 'in' OR author->>'type' = 'provider';

-- `dimension`: '' is the whole workspace. `bucket`: of a duration; 0 for counts.
CREATE TABLE inbox_figures (
    workspace_id text COLLATE "C" NOT NULL,
    dimension text COLLATE "C" NOT NULL,
    grain text COLLATE "C" NOT NULL,
    measure text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    value text COLLATE "C" NOT NULL,
    bucket smallint NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, dimension, grain, measure, starts_at, value, bucket)
);
CREATE INDEX inbox_figures_age ON inbox_figures (starts_at);

-- The values of a dimension that have figures of their own in a month (UTC). All others are summed up under ''.
CREATE TABLE inbox_figure_values (
    workspace_id text COLLATE "C" NOT NULL,
    dimension text COLLATE "C" NOT NULL,
    month timestamptz NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, dimension, month, value)
);
CREATE INDEX inbox_figure_values_age ON inbox_figure_values (month);

CREATE TABLE inbox_figure_progress (
    is_only boolean PRIMARY KEY CHECK (is_only),
    begun_at timestamptz NOT NULL,
    counted_until timestamptz NOT NULL
);
