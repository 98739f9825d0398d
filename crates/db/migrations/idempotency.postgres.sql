-- Which requests were carried out under a key of the caller's, and how they were answered. Shared by
-- every DB_SCHEMA of one database, so it may be there already.
CREATE TABLE IF NOT EXISTS lavra.idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    id UUID NOT NULL,
    answer TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    reserved_until TIMESTAMPTZ NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_idempotency_keys_created ON lavra.idempotency_keys (created_at);
ALTER TABLE lavra.idempotency_keys ENABLE ROW LEVEL SECURITY;
