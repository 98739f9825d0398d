CREATE TABLE kodus_workflow.writer_jobs (
    job_id VARCHAR PRIMARY KEY,
    status VARCHAR NOT NULL DEFAULT 'processing'
        CHECK (status IN ('processing', 'completed', 'partial', 'failed')),
    request VARCHAR NOT NULL,
    has_headers BOOLEAN NOT NULL DEFAULT false,
    total BIGINT NOT NULL DEFAULT 0,
    processed BIGINT NOT NULL DEFAULT 0,
    success_count BIGINT NOT NULL DEFAULT 0,
    failed_count BIGINT NOT NULL DEFAULT 0,
    duplicate_count BIGINT NOT NULL DEFAULT 0,
    unknown_keys VARCHAR NOT NULL DEFAULT '{}',
    error_code VARCHAR,
    error_message VARCHAR,
    token BIGINT NOT NULL DEFAULT 0,
    held_by UUID,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ
);

-- No key: rows that are deleted would never be reclaimed.
CREATE TABLE kodus_workflow.writer_failed_items (
    job_id VARCHAR NOT NULL,
    item_index BIGINT NOT NULL,
    data VARCHAR NOT NULL,
    error VARCHAR NOT NULL
);

CREATE SCHEMA IF NOT EXISTS lavra;
CREATE TABLE IF NOT EXISTS lavra.secrets (
    name TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
