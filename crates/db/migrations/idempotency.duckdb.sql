CREATE TABLE IF NOT EXISTS lavra.idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    id UUID NOT NULL,
    answer TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    reserved_until TIMESTAMPTZ NOT NULL
);
