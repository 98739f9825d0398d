-- A DuckDB file sums up a column of pages in no time.
SELECT 1;
