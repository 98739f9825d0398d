-- The fleet's tables: the specification's, then ours. It runs on an empty database and on the specification's older
-- schema with rows in it, so every statement asks first. A value that is added to a type here is
-- used by nothing here: it may not be, before the commit.

DO $$
BEGIN
    IF to_regtype('public.mission_status') IS NULL THEN
        CREATE TYPE public.mission_status AS ENUM (
            'queued', 'running', 'completed', 'failed', 'canceled');
    END IF;
    IF to_regtype('public.checkpoint_type') IS NULL THEN
        CREATE TYPE public.checkpoint_type AS ENUM (
            'atribuido', 'extracao', 'armazenamento', 'finalizado');
    END IF;
    IF to_regtype('public.worker_status') IS NULL THEN
        CREATE TYPE public.worker_status AS ENUM (
            'idle', 'initializing', 'ready', 'scraping', 'error');
    END IF;
    IF to_regtype('public.mission_event') IS NULL THEN
        CREATE TYPE public.mission_event AS ENUM (
            'mission_queued', 'mission_assigned', 'mission_canceled',
            'session_started', 'session_ready', 'session_failed', 'session_terminated',
            'scrape_started', 'scrape_progress', 'scrape_completed', 'scrape_failed',
            'scrape_empty',
            'writer_started', 'writer_progress', 'writer_completed', 'writer_failed',
            'mission_completed', 'mission_failed', 'retry_triggered', 'proxy_rotated');
    END IF;
END $$;

ALTER TYPE public.checkpoint_type ADD VALUE IF NOT EXISTS 'finalizado';

-- A prefix and the 32 digits of a version-7 UUID: ids sort by the time of their making.

CREATE OR REPLACE FUNCTION public.generate_mission_id() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT 'mis_'
        || lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;

CREATE OR REPLACE FUNCTION public.generate_worker_id() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT 'wrk_'
        || lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;

CREATE OR REPLACE FUNCTION public.generate_proxy_id() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT 'prx_'
        || lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;

CREATE OR REPLACE FUNCTION public.generate_writer_id() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT 'wrt_'
        || lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;

CREATE OR REPLACE FUNCTION public.generate_mission_log_id() RETURNS TEXT
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT 'log_'
        || lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;


CREATE SEQUENCE IF NOT EXISTS public.fleet_tokens;

CREATE TABLE IF NOT EXISTS public.missions (
    id TEXT PRIMARY KEY DEFAULT public.generate_mission_id(),
    date_start DATE NOT NULL,
    date_end DATE NOT NULL,
    media_type VARCHAR(10) NOT NULL CHECK (media_type IN ('all', 'video', 'image')),
    languages TEXT[] NOT NULL,
    status public.mission_status NOT NULL DEFAULT 'queued',
    checkpoint public.checkpoint_type NULL,
    worker_id TEXT,
    worker_job_id VARCHAR(100) NULL,
    worker_data_url TEXT NULL,
    proxy_used VARCHAR(200) NULL,
    writer_job_id VARCHAR(100) NULL,
    ads_count INTEGER NULL,
    error_code VARCHAR(20) NULL,
    error_message TEXT NULL,
    retry_count INTEGER DEFAULT 0,
    created_at TIMESTAMPTZ DEFAULT now(),
    queued_at TIMESTAMPTZ NULL,
    started_at TIMESTAMPTZ NULL,
    finished_at TIMESTAMPTZ NULL
);

CREATE TABLE IF NOT EXISTS public.workers (
    id TEXT PRIMARY KEY DEFAULT public.generate_worker_id(),
    name VARCHAR(100) NOT NULL,
    url VARCHAR(500) NOT NULL,
    api_key VARCHAR(200) NOT NULL,
    storage_domain VARCHAR(255) NULL,
    status public.worker_status NOT NULL DEFAULT 'idle',
    session_count INTEGER NOT NULL DEFAULT 0,
    current_mission_id TEXT,
    active BOOLEAN DEFAULT true,
    last_test_at TIMESTAMPTZ NULL,
    last_test_ok BOOLEAN NULL,
    created_at TIMESTAMPTZ DEFAULT now(),
    updated_at TIMESTAMPTZ DEFAULT now()
);

CREATE TABLE IF NOT EXISTS public.proxies (
    id TEXT PRIMARY KEY DEFAULT public.generate_proxy_id(),
    name TEXT NULL,
    host VARCHAR(200) NOT NULL,
    port INTEGER NULL,
    username VARCHAR(100) NULL,
    password VARCHAR(100) NULL,
    active BOOLEAN DEFAULT true,
    in_use_by_worker_id TEXT,
    fail_count INTEGER DEFAULT 0,
    last_used_at TIMESTAMPTZ NULL,
    last_test_at TIMESTAMPTZ NULL,
    last_test_ok BOOLEAN NULL,
    created_at TIMESTAMPTZ DEFAULT now()
);

CREATE TABLE IF NOT EXISTS public.writers (
    id TEXT PRIMARY KEY DEFAULT public.generate_writer_id(),
    name VARCHAR(100) NOT NULL,
    url VARCHAR(500) NOT NULL,
    api_key VARCHAR(200) NOT NULL,
    active BOOLEAN DEFAULT true,
    last_test_at TIMESTAMPTZ NULL,
    last_test_ok BOOLEAN NULL,
    created_at TIMESTAMPTZ DEFAULT now(),
    updated_at TIMESTAMPTZ DEFAULT now()
);

CREATE TABLE IF NOT EXISTS public.mission_logs (
    id TEXT PRIMARY KEY DEFAULT public.generate_mission_log_id(),
    mission_id TEXT,
    event public.mission_event NOT NULL,
    details JSONB NULL,
    timestamp TIMESTAMPTZ DEFAULT now()
);

-- From the older schema.
DO $$
DECLARE
    kind REGTYPE;
    has_old BOOLEAN;
    has_new BOOLEAN;
    strange BIGINT;
BEGIN
    SELECT count(*) FILTER (WHERE attname = 'job_id') > 0,
           count(*) FILTER (WHERE attname = 'worker_job_id') > 0
    INTO has_old, has_new
    FROM pg_attribute
    WHERE attrelid = 'public.missions'::regclass AND attnum > 0 AND NOT attisdropped;
    IF has_old AND NOT has_new THEN
        ALTER TABLE public.missions RENAME COLUMN job_id TO worker_job_id;
    END IF;

    SELECT atttypid INTO kind FROM pg_attribute
    WHERE attrelid = 'public.mission_logs'::regclass AND attname = 'event' AND NOT attisdropped;
    IF kind IS NULL OR kind <> 'public.mission_event'::regtype THEN
        -- What is none of the specification's events is kept where nothing looks for one.
        CREATE TABLE IF NOT EXISTS lavra.mission_logs_before (entry JSONB NOT NULL);
        ALTER TABLE lavra.mission_logs_before ENABLE ROW LEVEL SECURITY;
        WITH gone AS (
            DELETE FROM public.mission_logs l
            WHERE to_jsonb(l)->>'event' IS NULL
               OR to_jsonb(l)->>'event' <> ALL (enum_range(NULL::public.mission_event)::text[])
            RETURNING to_jsonb(l) AS entry
        ), kept AS (
            INSERT INTO lavra.mission_logs_before SELECT entry FROM gone RETURNING 1
        )
        SELECT count(*) INTO strange FROM kept;
        IF strange > 0 THEN
            RAISE WARNING '% entries of mission_logs are none of the fleet''s events: moved to lavra.mission_logs_before', strange;
        END IF;
    END IF;
    IF kind IS NULL THEN
        ALTER TABLE public.mission_logs ADD COLUMN event public.mission_event NOT NULL;
    ELSIF kind <> 'public.mission_event'::regtype THEN
        ALTER TABLE public.mission_logs ALTER COLUMN event DROP DEFAULT;
        ALTER TABLE public.mission_logs ALTER COLUMN event TYPE public.mission_event
            USING event::text::public.mission_event;
        ALTER TABLE public.mission_logs ALTER COLUMN event SET NOT NULL;
    END IF;
END $$;

ALTER TABLE public.missions
    ADD COLUMN IF NOT EXISTS checkpoint public.checkpoint_type NULL,
    ADD COLUMN IF NOT EXISTS worker_id TEXT,
    ADD COLUMN IF NOT EXISTS worker_job_id VARCHAR(100) NULL,
    ADD COLUMN IF NOT EXISTS worker_data_url TEXT NULL,
    ADD COLUMN IF NOT EXISTS proxy_used VARCHAR(200) NULL,
    ADD COLUMN IF NOT EXISTS writer_job_id VARCHAR(100) NULL,
    ADD COLUMN IF NOT EXISTS ads_count INTEGER NULL,
    ADD COLUMN IF NOT EXISTS error_code VARCHAR(20) NULL,
    ADD COLUMN IF NOT EXISTS error_message TEXT NULL,
    ADD COLUMN IF NOT EXISTS retry_count INTEGER DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_at TIMESTAMPTZ DEFAULT now(),
    ADD COLUMN IF NOT EXISTS queued_at TIMESTAMPTZ NULL,
    ADD COLUMN IF NOT EXISTS started_at TIMESTAMPTZ NULL,
    ADD COLUMN IF NOT EXISTS finished_at TIMESTAMPTZ NULL,
    ALTER COLUMN id SET DEFAULT public.generate_mission_id();
ALTER TABLE public.workers
    ADD COLUMN IF NOT EXISTS storage_domain VARCHAR(255) NULL,
    ADD COLUMN IF NOT EXISTS status public.worker_status NOT NULL DEFAULT 'idle',
    ADD COLUMN IF NOT EXISTS session_count INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS current_mission_id TEXT,
    ADD COLUMN IF NOT EXISTS active BOOLEAN DEFAULT true,
    ADD COLUMN IF NOT EXISTS last_test_at TIMESTAMPTZ NULL,
    ADD COLUMN IF NOT EXISTS last_test_ok BOOLEAN NULL,
    ADD COLUMN IF NOT EXISTS created_at TIMESTAMPTZ DEFAULT now(),
    ADD COLUMN IF NOT EXISTS updated_at TIMESTAMPTZ DEFAULT now(),
    ALTER COLUMN id SET DEFAULT public.generate_worker_id();
ALTER TABLE public.proxies
    ADD COLUMN IF NOT EXISTS name TEXT NULL,
    ADD COLUMN IF NOT EXISTS active BOOLEAN DEFAULT true,
    ADD COLUMN IF NOT EXISTS in_use_by_worker_id TEXT,
    ADD COLUMN IF NOT EXISTS fail_count INTEGER DEFAULT 0,
    ADD COLUMN IF NOT EXISTS last_used_at TIMESTAMPTZ NULL,
    ADD COLUMN IF NOT EXISTS last_test_at TIMESTAMPTZ NULL,
    ADD COLUMN IF NOT EXISTS last_test_ok BOOLEAN NULL,
    ADD COLUMN IF NOT EXISTS created_at TIMESTAMPTZ DEFAULT now(),
    ALTER COLUMN id SET DEFAULT public.generate_proxy_id();
ALTER TABLE public.writers
    ALTER COLUMN id SET DEFAULT public.generate_writer_id();
ALTER TABLE public.mission_logs
    ADD COLUMN IF NOT EXISTS mission_id TEXT,
    ADD COLUMN IF NOT EXISTS details JSONB NULL,
    ADD COLUMN IF NOT EXISTS timestamp TIMESTAMPTZ DEFAULT now(),
    ALTER COLUMN id SET DEFAULT public.generate_mission_log_id();

-- Ours.
ALTER TABLE public.missions
    ADD COLUMN IF NOT EXISTS attempts INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS phase_started_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS writer_id TEXT,
    ADD COLUMN IF NOT EXISTS writer_accepted_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS writer_processed BIGINT,
    ADD COLUMN IF NOT EXISTS writer_moved_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS next_attempt_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS waiting TEXT,
    ADD COLUMN IF NOT EXISTS told_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS logged_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS token BIGINT,
    ADD COLUMN IF NOT EXISTS held_by UUID;
ALTER TABLE public.workers
    ADD COLUMN IF NOT EXISTS last_proxy_id TEXT,
    ADD COLUMN IF NOT EXISTS session_id TEXT,
    ADD COLUMN IF NOT EXISTS session_started_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS session_accepted BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS session_errors INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS error_code TEXT,
    ADD COLUMN IF NOT EXISTS error_message TEXT,
    ADD COLUMN IF NOT EXISTS next_attempt_at TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS close_reason TEXT,
    ADD COLUMN IF NOT EXISTS close_by TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS unclosed BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS stop_by TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS unreachable_since TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS waiting TEXT,
    ADD COLUMN IF NOT EXISTS token BIGINT,
    ADD COLUMN IF NOT EXISTS held_by UUID;
ALTER TABLE public.mission_logs
    ADD COLUMN IF NOT EXISTS session_id TEXT;

-- Workers and missions name each other, so the references come last. One that old rows break is
-- kept for the new ones.
DO $$
DECLARE
    reference RECORD;
    name TEXT;
BEGIN
    FOR reference IN
        SELECT * FROM (VALUES
            ('missions', 'worker_id', 'workers', ''),
            ('workers', 'current_mission_id', 'missions', ''),
            ('proxies', 'in_use_by_worker_id', 'workers', ''),
            ('mission_logs', 'mission_id', 'missions', ' ON DELETE CASCADE')
        ) AS r(child, col, parent, action)
    LOOP
        IF NOT EXISTS (
            SELECT 1 FROM pg_constraint c
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND c.conkey = ARRAY[a.attnum]
            WHERE c.contype = 'f' AND a.attname = reference.col
              AND c.conrelid = to_regclass('public.' || reference.child)
        ) THEN
            name := reference.child || '_' || reference.col || '_fkey';
            EXECUTE format(
                'ALTER TABLE public.%I ADD CONSTRAINT %I FOREIGN KEY (%I)
                 REFERENCES public.%I (id)%s NOT VALID',
                reference.child, name, reference.col, reference.parent, reference.action);
            BEGIN
                EXECUTE format('ALTER TABLE public.%I VALIDATE CONSTRAINT %I',
                               reference.child, name);
            EXCEPTION WHEN foreign_key_violation THEN
                RAISE WARNING 'rows of % name a % that is not there: % holds for new rows only',
                    reference.child, reference.col, name;
            END;
        END IF;
    END LOOP;
END $$;

CREATE INDEX IF NOT EXISTS idx_missions_status ON public.missions (status);
CREATE INDEX IF NOT EXISTS idx_missions_checkpoint ON public.missions (checkpoint)
    WHERE checkpoint IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_missions_dates ON public.missions (date_start, date_end);
CREATE INDEX IF NOT EXISTS idx_missions_worker ON public.missions (worker_id)
    WHERE status = 'running';
CREATE INDEX IF NOT EXISTS idx_missions_queued ON public.missions (queued_at)
    WHERE status = 'queued';
CREATE INDEX IF NOT EXISTS idx_workers_active ON public.workers (active) WHERE active = true;
CREATE INDEX IF NOT EXISTS idx_workers_status ON public.workers (status);
CREATE INDEX IF NOT EXISTS idx_proxies_available ON public.proxies (active, in_use_by_worker_id)
    WHERE active = true AND in_use_by_worker_id IS NULL;
CREATE INDEX IF NOT EXISTS idx_proxies_in_use ON public.proxies (in_use_by_worker_id)
    WHERE in_use_by_worker_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_mission ON public.mission_logs (mission_id);
CREATE INDEX IF NOT EXISTS idx_mission_logs_event ON public.mission_logs (event);
CREATE INDEX IF NOT EXISTS idx_mission_logs_timestamp ON public.mission_logs (timestamp DESC);

-- What waits for a worker, in the order of claiming, and what is being stored: as small as these
-- are, however many missions there were.
CREATE INDEX IF NOT EXISTS idx_missions_next ON public.missions (queued_at, id)
    WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL;
CREATE INDEX IF NOT EXISTS idx_missions_storing ON public.missions (id)
    WHERE status = 'running' AND checkpoint = 'armazenamento'
       OR status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_missions_of_worker ON public.missions (worker_id)
    WHERE worker_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_session ON public.mission_logs (session_id)
    WHERE mission_id IS NULL;

CREATE TABLE IF NOT EXISTS public.fleet_processes (
    id UUID PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS public.fleet_settings (
    id BOOLEAN PRIMARY KEY DEFAULT true CHECK (id),
    adjustable JSONB NOT NULL DEFAULT '{}',
    mode TEXT NOT NULL DEFAULT 'off',
    task_id UUID
);
INSERT INTO public.fleet_settings DEFAULT VALUES ON CONFLICT DO NOTHING;

-- Where the writer stores by default; a table of the user's own is used as it is.
DO $$
BEGIN
    IF to_regclass('public.ads') IS NULL THEN
        CREATE TABLE public.ads (
            id TEXT PRIMARY KEY,
            data JSONB NOT NULL,
            first_seen_at TIMESTAMPTZ NOT NULL DEFAULT now(),
            last_seen_at TIMESTAMPTZ NOT NULL DEFAULT now()
        );
        ALTER TABLE public.ads ENABLE ROW LEVEL SECURITY;
    END IF;
END $$;

-- Rows change several times in a short life: room on the page, and a vacuum that keeps up.
ALTER TABLE public.missions SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE public.workers SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE public.proxies SET (fillfactor = 70);
ALTER TABLE public.fleet_processes SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- Nobody but the owner reads these through a data API.
ALTER TABLE public.missions ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.workers ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.proxies ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.writers ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.mission_logs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.fleet_processes ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.fleet_settings ENABLE ROW LEVEL SECURITY;
