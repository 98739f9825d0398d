-- In the schema that no data API exposes: an address often is a credential. `workflow` names the
-- schema of the tasks, because several may share one database.
CREATE TABLE IF NOT EXISTS lavra.webhooks (
    id UUID PRIMARY KEY,
    workflow TEXT NOT NULL,
    name TEXT NOT NULL,
    -- As it may be shown: the scheme and the host. All of it is sealed.
    url TEXT NOT NULL,
    events TEXT[] NOT NULL,
    active BOOLEAN NOT NULL DEFAULT true,
    -- Where its address and its secret are sealed.
    sealed TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- What happened before is not told.
    since TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_ok_at TIMESTAMPTZ,
    last_error TEXT,
    UNIQUE (workflow, name)
);

-- How far the watcher has read: the ends of tasks by their transaction, the log by its time.
CREATE TABLE IF NOT EXISTS lavra.webhook_position (
    workflow TEXT PRIMARY KEY,
    transaction BIGINT NOT NULL,
    event UUID NOT NULL,
    floor TIMESTAMPTZ NOT NULL,
    mark BIGINT NOT NULL,
    marked_at TIMESTAMPTZ NOT NULL
);

-- What was told of the time above the floor, which is read again and again.
CREATE TABLE IF NOT EXISTS lavra.webhook_told (
    workflow TEXT NOT NULL,
    id TEXT NOT NULL,
    happened_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workflow, id)
);

ALTER TABLE lavra.webhooks ENABLE ROW LEVEL SECURITY;
ALTER TABLE lavra.webhook_position ENABLE ROW LEVEL SECURITY;
ALTER TABLE lavra.webhook_told ENABLE ROW LEVEL SECURITY;
