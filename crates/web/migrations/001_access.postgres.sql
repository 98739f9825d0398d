-- Shared by every DB_SCHEMA of one database, as the secrets are.
CREATE TABLE IF NOT EXISTS lavra.api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'writer')),
    -- SHA-256 of the secret, in hexadecimal digits.
    hash TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);
ALTER TABLE lavra.api_keys ENABLE ROW LEVEL SECURITY;

CREATE TABLE IF NOT EXISTS lavra.sessions (
    -- SHA-256 of what stands in the cookie.
    hash TEXT PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES lavra.api_keys(id) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_key_id ON lavra.sessions (key_id);
ALTER TABLE lavra.sessions ENABLE ROW LEVEL SECURITY;
