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

-- What counts as done: a page of a task, once. No key: with one, each checkpoint would write all rows
-- again. The one writer looks a page up before it adds it, in the same transaction.
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
    fetched_at TIMESTAMP WITH TIME ZONE NOT NULL
);

-- No key: one would make each commit read earlier bodies again.
CREATE TABLE IF NOT EXISTS psa.{source}_raw_responses (
    id UUID NOT NULL,
    extracted_at TIMESTAMP,
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



CREATE OR REPLACE VIEW psa.{source}_missing_pages AS
SELECT t.task_id, t.endpoint_name, t.data_date,
       unnest(CAST(t.missing_pages AS INTEGER[])) AS page_number
FROM psa.{source}_extraction_tasks t
WHERE t.status IN ('FETCHING', 'PARTIAL');
