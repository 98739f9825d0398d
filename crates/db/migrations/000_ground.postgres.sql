CREATE TABLE kodus_workflow.leases (
    name TEXT PRIMARY KEY,
    holder UUID NOT NULL,
    term BIGINT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
ALTER TABLE kodus_workflow.leases ENABLE ROW LEVEL SECURITY;

-- Shared by every DB_SCHEMA of one database, so it may be there already.
CREATE SCHEMA IF NOT EXISTS lavra;
REVOKE ALL ON SCHEMA lavra FROM PUBLIC;
CREATE TABLE IF NOT EXISTS lavra.secrets (
    name TEXT PRIMARY KEY,
    sealed BYTEA NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
ALTER TABLE lavra.secrets ENABLE ROW LEVEL SECURITY;
