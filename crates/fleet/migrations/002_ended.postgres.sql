-- For the pace of the last hours, whatever ended before them.
CREATE INDEX IF NOT EXISTS idx_missions_finished ON public.missions (finished_at)
    WHERE finished_at IS NOT NULL;
