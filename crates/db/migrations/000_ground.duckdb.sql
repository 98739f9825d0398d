CREATE TABLE kodus_workflow.leases (
    name TEXT PRIMARY KEY,
    holder UUID NOT NULL,
    term BIGINT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);

CREATE SCHEMA IF NOT EXISTS lavra;
CREATE TABLE IF NOT EXISTS lavra.secrets (
    name TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
