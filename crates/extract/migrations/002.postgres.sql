-- What went wrong with a page, for people who look at it: small, as failures are few.
CREATE INDEX IF NOT EXISTS idx_{source}_raw_responses_failed
    ON psa.{source}_raw_responses (task_id, page) WHERE outcome = 'failed';
