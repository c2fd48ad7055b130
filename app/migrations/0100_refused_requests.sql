-- Requests of the API that were refused, for a while: what a caller quotes to support by the request's identifier.

-- `path`: without the query and without what may be personal data. `problem`: the slug. `pointers`: of a validation.
CREATE TABLE refused_requests (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    token_id text COLLATE "C" NOT NULL,
    trace_id text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    status integer NOT NULL,
    problem text NOT NULL,
    pointers text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL
);

CREATE INDEX refused_requests_trace ON refused_requests (trace_id);
CREATE INDEX refused_requests_of_problem ON refused_requests (workspace_id, problem, id);
