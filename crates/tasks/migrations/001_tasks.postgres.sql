CREATE TABLE IF NOT EXISTS kodus_workflow.tasks (
    id UUID PRIMARY KEY,
    type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('PENDING','IN_PROGRESS','COMPLETED','FAILED','CANCELLED')),
    state TEXT NOT NULL,
    progress SMALLINT NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 100),
    priority SMALLINT NOT NULL DEFAULT 1,
    metadata JSONB NOT NULL DEFAULT '{}',
    error TEXT,
    input_hash CHAR(64),
    retry_count INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    version INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    run_at TIMESTAMPTZ,
    token BIGINT NOT NULL DEFAULT 0,
    process UUID,
    stop_by TIMESTAMPTZ
);

CREATE UNIQUE INDEX IF NOT EXISTS uniq_task_type_input_hash
    ON kodus_workflow.tasks (type, input_hash)
    WHERE input_hash IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_tasks_status_updated_at
    ON kodus_workflow.tasks (status, updated_at DESC);

-- What may be claimed at once, in the order of claiming: as small as what waits.
CREATE INDEX IF NOT EXISTS idx_tasks_ready
    ON kodus_workflow.tasks (type, priority DESC, id)
    WHERE status = 'PENDING' AND run_at IS NULL;

CREATE INDEX IF NOT EXISTS idx_tasks_due
    ON kodus_workflow.tasks (type, run_at)
    WHERE status = 'PENDING' AND run_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_tasks_stopping
    ON kodus_workflow.tasks (stop_by)
    WHERE stop_by IS NOT NULL;

CREATE TABLE IF NOT EXISTS kodus_workflow.task_events (
    id UUID PRIMARY KEY,
    task_id UUID NOT NULL REFERENCES kodus_workflow.tasks(id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    state TEXT,
    detail JSONB,
    actor TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    version INTEGER NOT NULL DEFAULT 0,
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id()
);

CREATE INDEX IF NOT EXISTS idx_task_events_task_created
    ON kodus_workflow.task_events (task_id, created_at DESC);

CREATE INDEX IF NOT EXISTS idx_task_events_status_created
    ON kodus_workflow.task_events (status, created_at DESC);

-- The stream of all events is read in the order of transactions: an id can commit late.
CREATE INDEX IF NOT EXISTS idx_task_events_transaction
    ON kodus_workflow.task_events (transaction);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_results (
    task_id UUID PRIMARY KEY REFERENCES kodus_workflow.tasks(id) ON DELETE CASCADE,
    payload JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

-- Made and removed with its task by the statements that do so, which spares each the check.
CREATE TABLE IF NOT EXISTS kodus_workflow.task_inputs (
    task_id UUID PRIMARY KEY,
    payload JSONB NOT NULL
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_keys (
    key TEXT PRIMARY KEY,
    fingerprint CHAR(64) NOT NULL,
    task_id UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE INDEX IF NOT EXISTS idx_task_keys_task ON kodus_workflow.task_keys (task_id);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_outbox (
    id UUID PRIMARY KEY,
    task_id UUID NOT NULL,
    type TEXT NOT NULL,
    next_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    attempts INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_types (
    name TEXT PRIMARY KEY,
    declared_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_schedules (
    name TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    cron TEXT NOT NULL,
    payload JSONB NOT NULL DEFAULT '{}',
    enabled BOOLEAN NOT NULL DEFAULT TRUE,
    next_at TIMESTAMPTZ NOT NULL,
    last_task UUID
);

CREATE TABLE IF NOT EXISTS kodus_workflow.task_dead_letters (
    id UUID PRIMARY KEY,
    task_id UUID,
    type TEXT,
    reason TEXT NOT NULL,
    body TEXT,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE INDEX IF NOT EXISTS idx_task_dead_letters_task
    ON kodus_workflow.task_dead_letters (task_id);

CREATE TABLE IF NOT EXISTS kodus_workflow.processes (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL,
    types TEXT[] NOT NULL DEFAULT '{}',
    started_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    beat_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

CREATE SEQUENCE IF NOT EXISTS kodus_workflow.task_tokens;

-- Rows change several times in a short life: room on the page, and a vacuum that keeps up.
ALTER TABLE kodus_workflow.tasks SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE kodus_workflow.task_events SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE kodus_workflow.task_outbox SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE kodus_workflow.processes SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- Nobody but the owner reads these through a data API.
ALTER TABLE kodus_workflow.tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_inputs ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_types ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.task_dead_letters ENABLE ROW LEVEL SECURITY;
ALTER TABLE kodus_workflow.processes ENABLE ROW LEVEL SECURITY;
