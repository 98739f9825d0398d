CREATE TABLE IF NOT EXISTS kodus_workflow.tasks (
    id UUID PRIMARY KEY,
    type VARCHAR NOT NULL,
    status VARCHAR NOT NULL CHECK (status IN ('PENDING','IN_PROGRESS','COMPLETED','FAILED','CANCELLED')),
    state VARCHAR NOT NULL,
    progress SMALLINT NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    priority SMALLINT NOT NULL DEFAULT 1,
    metadata JSON NOT NULL DEFAULT '{}',
    error VARCHAR,
    input_hash VARCHAR,
    retry_count INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    version INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    run_at TIMESTAMPTZ,
    token BIGINT NOT NULL DEFAULT 0,
    process UUID,
    stop_by TIMESTAMPTZ,
    UNIQUE (type, input_hash)
);

-- No key on events: they are only appended and removed, and a key would keep their space for ever.
CREATE TABLE IF NOT EXISTS kodus_workflow.task_events (
    id UUID NOT NULL,
    task_id UUID NOT NULL,
    status VARCHAR NOT NULL,
    state VARCHAR,
    detail JSON,
    actor VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    version INTEGER NOT NULL DEFAULT 0,
    transaction BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_results (
    task_id UUID PRIMARY KEY,
    payload JSON NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_inputs (
    task_id UUID PRIMARY KEY,
    payload JSON NOT NULL
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_keys (
    key VARCHAR PRIMARY KEY,
    fingerprint VARCHAR NOT NULL,
    task_id UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_outbox (
    id UUID NOT NULL,
    task_id UUID NOT NULL,
    type VARCHAR NOT NULL,
    next_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    attempts INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_types (
    name VARCHAR PRIMARY KEY,
    declared_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_schedules (
    name VARCHAR PRIMARY KEY,
    type VARCHAR NOT NULL,
    cron VARCHAR NOT NULL,
    payload JSON NOT NULL DEFAULT '{}',
    enabled BOOLEAN NOT NULL DEFAULT TRUE,
    next_at TIMESTAMPTZ NOT NULL,
    last_task UUID
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_dead_letters (
    id UUID NOT NULL,
    task_id UUID,
    type VARCHAR,
    reason VARCHAR NOT NULL,
    body VARCHAR,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS kodus_workflow.processes (
    id UUID PRIMARY KEY,
    name VARCHAR NOT NULL,
    types VARCHAR[] NOT NULL DEFAULT [],
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    beat_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
