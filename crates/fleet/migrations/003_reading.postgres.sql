-- What people ask the log for, newest first, in the order in which it is read. Few entries have each
-- of these, so the indexes are small.
CREATE INDEX IF NOT EXISTS idx_mission_logs_event_time
    ON public.mission_logs (event, timestamp DESC, id DESC);
CREATE INDEX IF NOT EXISTS idx_mission_logs_of_no_mission
    ON public.mission_logs (timestamp DESC, id DESC) WHERE mission_id IS NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_of_worker
    ON public.mission_logs ((details->>'worker_id'), timestamp DESC, id DESC)
    WHERE details->>'worker_id' IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_of_proxy
    ON public.mission_logs ((details->>'proxy_name'), timestamp DESC, id DESC)
    WHERE details->>'proxy_name' IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_of_error
    ON public.mission_logs ((details->>'error_code'), timestamp DESC, id DESC)
    WHERE details->>'error_code' IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_mission_logs_of_session
    ON public.mission_logs (session_id, timestamp DESC, id DESC) WHERE session_id IS NOT NULL;
