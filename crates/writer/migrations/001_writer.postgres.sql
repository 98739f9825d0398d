CREATE TABLE kodus_workflow.writer_jobs (
    job_id TEXT PRIMARY KEY,
    status TEXT NOT NULL DEFAULT 'processing'
        CHECK (status IN ('processing', 'completed', 'partial', 'failed')),
    -- What was asked for, without the headers of its source and the query of its URL: those are sealed.
    request TEXT NOT NULL,
    -- Whether there are any.
    has_headers BOOLEAN NOT NULL DEFAULT false,
    total BIGINT NOT NULL DEFAULT 0,
    processed BIGINT NOT NULL DEFAULT 0,
    success_count BIGINT NOT NULL DEFAULT 0,
    failed_count BIGINT NOT NULL DEFAULT 0,
    duplicate_count BIGINT NOT NULL DEFAULT 0,
    unknown_keys TEXT NOT NULL DEFAULT '{}',
    error_code TEXT,
    error_message TEXT,
    -- One more with each claim: who writes with an older one was replaced.
    token BIGINT NOT NULL DEFAULT 0,
    held_by UUID,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ
);
CREATE INDEX writer_jobs_open ON kodus_workflow.writer_jobs (created_at, job_id)
    WHERE completed_at IS NULL;
ALTER TABLE kodus_workflow.writer_jobs SET (fillfactor = 70);
ALTER TABLE kodus_workflow.writer_jobs ENABLE ROW LEVEL SECURITY;

-- The rows that could not be stored. Text, because what is wrong with them may be that they are no jsonb.
CREATE TABLE kodus_workflow.writer_failed_items (
    job_id TEXT NOT NULL REFERENCES kodus_workflow.writer_jobs (job_id) ON DELETE CASCADE,
    item_index BIGINT NOT NULL,
    data TEXT NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (job_id, item_index)
);
ALTER TABLE kodus_workflow.writer_failed_items ENABLE ROW LEVEL SECURITY;

CREATE TABLE kodus_workflow.writer_processes (
    id UUID PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
);
ALTER TABLE kodus_workflow.writer_processes ENABLE ROW LEVEL SECURITY;

-- As the ground has it: the headers of sources are sealed there, also where nothing else of lavra is.
CREATE SCHEMA IF NOT EXISTS lavra;
REVOKE ALL ON SCHEMA lavra FROM PUBLIC;
CREATE TABLE IF NOT EXISTS lavra.secrets (
    name TEXT PRIMARY KEY,
    sealed BYTEA NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
ALTER TABLE lavra.secrets ENABLE ROW LEVEL SECURITY;
