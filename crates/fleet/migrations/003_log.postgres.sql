-- The log as people ask for it: newest first, of some events, of a worker, with an error code, or of no
-- mission. Each holds only the entries that it is for.
CREATE INDEX IF NOT EXISTS idx_mission_logs_event_time
    ON public.mission_logs (event, timestamp DESC, id DESC);
CREATE INDEX IF NOT EXISTS idx_mission_logs_worker_time
    ON public.mission_logs ((details->>'worker_id'), timestamp DESC, id DESC)
    WHERE details->>'worker_id' IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_error_time
    ON public.mission_logs ((details->>'error_code'), timestamp DESC, id DESC)
    WHERE details->>'error_code' IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_without_mission
    ON public.mission_logs (timestamp DESC, id DESC) WHERE mission_id IS NULL;
