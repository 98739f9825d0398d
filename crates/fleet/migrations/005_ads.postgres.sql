-- An ad that is seen again is written again. With room for its next version beside it no index is touched,
-- which takes half the time, and a table that was written twice is as large with it as without. Only where the
-- table is the one that was made here, and nobody has set it up otherwise.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_class AS c
        WHERE c.oid = to_regclass('public.ads') AND c.relkind = 'r' AND c.reloptions IS NULL
          AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
          AND (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
               WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
              = ARRAY['id', 'data', 'first_seen_at', 'last_seen_at']
    ) THEN
        ALTER TABLE public.ads SET (fillfactor = 50);
    END IF;
END $$;
