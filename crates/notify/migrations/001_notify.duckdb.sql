CREATE TABLE IF NOT EXISTS lavra.webhooks (
    id UUID PRIMARY KEY,
    workflow VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    events VARCHAR[] NOT NULL,
    active BOOLEAN NOT NULL DEFAULT true,
    sealed VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    since TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_ok_at TIMESTAMPTZ,
    last_error VARCHAR
);

CREATE TABLE IF NOT EXISTS lavra.webhook_position (
    workflow VARCHAR PRIMARY KEY,
    transaction BIGINT NOT NULL,
    event UUID NOT NULL,
    floor TIMESTAMPTZ NOT NULL,
    mark BIGINT NOT NULL,
    marked_at TIMESTAMPTZ NOT NULL
);

-- No key: it is only appended and removed, and a key would keep its space for ever.
CREATE TABLE IF NOT EXISTS lavra.webhook_told (
    workflow VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    happened_at TIMESTAMPTZ NOT NULL
);
