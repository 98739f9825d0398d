-- How much of each task is stored, so that whoever looks has no pages to count. The statement that changes
-- pages changes these as well, whoever makes it: in the same transaction, and under the lock on the task that
-- a writer of pages holds.
ALTER TABLE psa.{source}_extraction_tasks
    ADD COLUMN IF NOT EXISTS stored_pages BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS stored_records BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS stored_bytes BIGINT NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION psa.{source}_sum_up() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE psa.{source}_extraction_tasks t
        SET stored_pages = t.stored_pages - p.pages,
            stored_records = t.stored_records - p.records,
            stored_bytes = t.stored_bytes - p.bytes
        FROM (SELECT task_id, count(*) AS pages, sum(records) AS records, sum(bytes) AS bytes
              FROM lost GROUP BY task_id) p
        WHERE t.task_id = p.task_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        UPDATE psa.{source}_extraction_tasks t
        SET stored_pages = t.stored_pages + p.pages,
            stored_records = t.stored_records + p.records,
            stored_bytes = t.stored_bytes + p.bytes
        FROM (SELECT task_id, count(*) AS pages, sum(records) AS records, sum(bytes) AS bytes
              FROM gained GROUP BY task_id) p
        WHERE t.task_id = p.task_id;
    END IF;
    RETURN NULL;
END $$;

-- Nobody writes a page between the counting and the triggers.
LOCK TABLE psa.{source}_pages IN SHARE ROW EXCLUSIVE MODE;
UPDATE psa.{source}_extraction_tasks t
SET stored_pages = p.pages, stored_records = p.records, stored_bytes = p.bytes
FROM (SELECT task_id, count(*) AS pages, sum(records) AS records, sum(bytes) AS bytes
      FROM psa.{source}_pages GROUP BY task_id) p
WHERE t.task_id = p.task_id;

DROP TRIGGER IF EXISTS gained ON psa.{source}_pages;
DROP TRIGGER IF EXISTS changed ON psa.{source}_pages;
DROP TRIGGER IF EXISTS lost ON psa.{source}_pages;
CREATE TRIGGER gained AFTER INSERT ON psa.{source}_pages
    REFERENCING NEW TABLE AS gained
    FOR EACH STATEMENT EXECUTE FUNCTION psa.{source}_sum_up();
CREATE TRIGGER changed AFTER UPDATE ON psa.{source}_pages
    REFERENCING OLD TABLE AS lost NEW TABLE AS gained
    FOR EACH STATEMENT EXECUTE FUNCTION psa.{source}_sum_up();
CREATE TRIGGER lost AFTER DELETE ON psa.{source}_pages
    REFERENCING OLD TABLE AS lost
    FOR EACH STATEMENT EXECUTE FUNCTION psa.{source}_sum_up();
