-- A DuckDB file has no such setting; here there is nothing to do.
SELECT 1;
