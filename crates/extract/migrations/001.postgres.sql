CREATE SCHEMA IF NOT EXISTS psa;

CREATE TABLE IF NOT EXISTS psa.{source}_extraction_tasks (
    task_id VARCHAR PRIMARY KEY,
    endpoint_name VARCHAR NOT NULL,
    data_date DATE NOT NULL,
    status VARCHAR DEFAULT 'PENDING' NOT NULL
        CHECK (status IN ('PENDING','DISCOVERING','FETCHING','PARTIAL','COMPLETE','FAILED')),
    total_pages INTEGER,
    total_records INTEGER,
    missing_pages JSON,
    last_error TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now(),
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now(),
    token BIGINT NOT NULL DEFAULT 0,
    process UUID,
    is_begun BOOLEAN NOT NULL DEFAULT FALSE,
    attempts INTEGER NOT NULL DEFAULT 0,
    failing_since TIMESTAMP WITH TIME ZONE,
    next_attempt_at TIMESTAMP WITH TIME ZONE,
    discoveries INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 1,
    discovered_at TIMESTAMP WITH TIME ZONE,
    is_final BOOLEAN NOT NULL DEFAULT FALSE,
    verdict VARCHAR,
    CONSTRAINT {unique_task} UNIQUE (endpoint_name, data_date)
);

CREATE INDEX IF NOT EXISTS idx_{source}_extraction_tasks_open
    ON psa.{source}_extraction_tasks (status, data_date)
    WHERE status <> 'COMPLETE';

CREATE TABLE IF NOT EXISTS psa.{source}_extraction_windows (
    task_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    first_day DATE NOT NULL,
    last_day DATE NOT NULL,
    base INTEGER NOT NULL,
    total_pages INTEGER,
    total_records INTEGER,
    PRIMARY KEY (task_id, number)
);

-- What counts as done: a page of a task, once.
CREATE TABLE IF NOT EXISTS psa.{source}_pages (
    task_id VARCHAR NOT NULL,
    page INTEGER NOT NULL,
    records INTEGER NOT NULL,
    total_records INTEGER NOT NULL,
    total_pages INTEGER,
    generation INTEGER NOT NULL,
    response_id UUID NOT NULL,
    bytes INTEGER NOT NULL,
    body_hash VARCHAR NOT NULL,
    content_hash VARCHAR NOT NULL,
    fetched_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (task_id, page)
);

CREATE TABLE IF NOT EXISTS psa.{source}_raw_responses (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    extracted_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    endpoint_url VARCHAR NOT NULL,
    endpoint_name VARCHAR NOT NULL,
    request_parameters JSON,
    response_code INTEGER NOT NULL,
    response_content TEXT,
    response_headers JSON,
    data_date DATE,
    run_id VARCHAR,
    total_records INTEGER,
    total_pages INTEGER,
    current_page INTEGER,
    page_size INTEGER,
    task_id VARCHAR NOT NULL,
    page INTEGER NOT NULL,
    outcome VARCHAR NOT NULL CHECK (outcome IN ('data','empty','failed')),
    error TEXT,
    elapsed_ms INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS idx_{source}_endpoint_date_page
    ON psa.{source}_raw_responses (endpoint_name, data_date, current_page);

CREATE INDEX IF NOT EXISTS idx_{source}_response_code
    ON psa.{source}_raw_responses (response_code);

CREATE OR REPLACE VIEW psa.{source}_missing_pages WITH (security_invoker = true) AS
SELECT t.task_id, t.endpoint_name, t.data_date, p.page_number::integer AS page_number
FROM psa.{source}_extraction_tasks t,
     json_array_elements_text(t.missing_pages) AS p(page_number)
WHERE t.status IN ('FETCHING', 'PARTIAL');

ALTER TABLE psa.{source}_extraction_tasks SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE psa.{source}_extraction_tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE psa.{source}_extraction_windows ENABLE ROW LEVEL SECURITY;
ALTER TABLE psa.{source}_pages ENABLE ROW LEVEL SECURITY;
ALTER TABLE psa.{source}_raw_responses ENABLE ROW LEVEL SECURITY;
