-- For the report on workers: who scraped, and how long it took, as the entry itself says it. Only the ends of
-- scrapes have these, so the others are as small as before, and the report is read from the index alone.
-- It writes the log anew, once.
ALTER TABLE public.mission_logs
    ADD COLUMN IF NOT EXISTS scraped_by TEXT GENERATED ALWAYS AS (
        CASE WHEN event IN ('scrape_completed', 'scrape_failed') THEN details->>'worker_id' END
    ) STORED,
    ADD COLUMN IF NOT EXISTS scrape_ms BIGINT GENERATED ALWAYS AS (
        CASE WHEN event = 'scrape_completed' AND details->>'duration_ms' ~ '^[0-9]{1,18}$'
             THEN (details->>'duration_ms')::bigint END
    ) STORED;
CREATE INDEX IF NOT EXISTS idx_mission_logs_scrapes
    ON public.mission_logs (timestamp) INCLUDE (event, scraped_by, scrape_ms)
    WHERE event IN ('scrape_completed', 'scrape_failed');
