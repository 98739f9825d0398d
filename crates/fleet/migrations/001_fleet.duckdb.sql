CREATE SCHEMA IF NOT EXISTS public;

-- Keys only where they never change: an UPDATE stays in its place. What the specification refers to by foreign
-- keys is looked after by code.
CREATE TABLE IF NOT EXISTS public.missions (
    id VARCHAR PRIMARY KEY,
    date_start DATE NOT NULL,
    date_end DATE NOT NULL,
    media_type VARCHAR NOT NULL CHECK (media_type IN ('all', 'video', 'image')),
    languages VARCHAR[] NOT NULL,
    status VARCHAR NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'completed', 'failed', 'canceled')),
    checkpoint VARCHAR
        CHECK (checkpoint IN ('atribuido', 'extracao', 'armazenamento', 'finalizado')),
    worker_id VARCHAR,
    worker_job_id VARCHAR,
    worker_data_url VARCHAR,
    proxy_used VARCHAR,
    writer_job_id VARCHAR,
    ads_count INTEGER,
    error_code VARCHAR,
    error_message VARCHAR,
    retry_count INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    queued_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    attempts INTEGER NOT NULL DEFAULT 0,
    phase_started_at TIMESTAMPTZ,
    writer_id VARCHAR,
    writer_accepted_at TIMESTAMPTZ,
    writer_processed BIGINT,
    writer_moved_at TIMESTAMPTZ,
    next_attempt_at TIMESTAMPTZ,
    waiting VARCHAR,
    told_at TIMESTAMPTZ,
    logged_at TIMESTAMPTZ,
    token BIGINT,
    held_by UUID
);

CREATE TABLE IF NOT EXISTS public.workers (
    id VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    api_key VARCHAR NOT NULL,
    storage_domain VARCHAR,
    status VARCHAR NOT NULL DEFAULT 'idle'
        CHECK (status IN ('idle', 'initializing', 'ready', 'scraping', 'error')),
    session_count INTEGER NOT NULL DEFAULT 0,
    current_mission_id VARCHAR,
    active BOOLEAN NOT NULL DEFAULT true,
    last_test_at TIMESTAMPTZ,
    last_test_ok BOOLEAN,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_proxy_id VARCHAR,
    session_id VARCHAR,
    session_started_at TIMESTAMPTZ,
    session_accepted BOOLEAN NOT NULL DEFAULT false,
    session_errors INTEGER NOT NULL DEFAULT 0,
    error_code VARCHAR,
    error_message VARCHAR,
    next_attempt_at TIMESTAMPTZ,
    close_reason VARCHAR,
    close_by TIMESTAMPTZ,
    unclosed BOOLEAN NOT NULL DEFAULT false,
    stop_by TIMESTAMPTZ,
    unreachable_since TIMESTAMPTZ,
    waiting VARCHAR,
    token BIGINT,
    held_by UUID
);

CREATE TABLE IF NOT EXISTS public.proxies (
    id VARCHAR PRIMARY KEY,
    name VARCHAR,
    host VARCHAR NOT NULL,
    port INTEGER,
    username VARCHAR,
    password VARCHAR,
    active BOOLEAN NOT NULL DEFAULT true,
    in_use_by_worker_id VARCHAR,
    fail_count INTEGER NOT NULL DEFAULT 0,
    last_used_at TIMESTAMPTZ,
    last_test_at TIMESTAMPTZ,
    last_test_ok BOOLEAN,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS public.writers (
    id VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    api_key VARCHAR NOT NULL,
    active BOOLEAN NOT NULL DEFAULT true,
    last_test_at TIMESTAMPTZ,
    last_test_ok BOOLEAN,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- No key on the log: it is only appended and removed, and a key would keep its space for ever.
CREATE TABLE IF NOT EXISTS public.mission_logs (
    id VARCHAR NOT NULL,
    mission_id VARCHAR,
    event VARCHAR NOT NULL CHECK (event IN (
        'mission_queued', 'mission_assigned', 'mission_canceled',
        'session_started', 'session_ready', 'session_failed', 'session_terminated',
        'scrape_started', 'scrape_progress', 'scrape_completed', 'scrape_failed', 'scrape_empty',
        'writer_started', 'writer_progress', 'writer_completed', 'writer_failed',
        'mission_completed', 'mission_failed',
        'retry_triggered', 'proxy_rotated')),
    details JSON,
    timestamp TIMESTAMPTZ NOT NULL DEFAULT now(),
    session_id VARCHAR
);

-- What the writer fills, unless there is a table of the user's own.
CREATE TABLE IF NOT EXISTS public.ads (
    id VARCHAR PRIMARY KEY,
    data JSON NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_seen_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- Who looks after workers and missions, and when it last said so.
CREATE TABLE IF NOT EXISTS public.fleet_processes (
    id UUID PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
);

-- One row: what people adjust, and what the orchestrators are to do.
CREATE TABLE IF NOT EXISTS public.fleet_settings (
    id BOOLEAN PRIMARY KEY DEFAULT true CHECK (id),
    adjustable JSON NOT NULL DEFAULT '{}',
    mode VARCHAR NOT NULL DEFAULT 'off' CHECK (mode IN ('off', 'run', 'drain', 'stop')),
    task_id UUID
);
INSERT INTO public.fleet_settings DEFAULT VALUES ON CONFLICT DO NOTHING;
