-- Indexes and columns for PostgreSQL; here there is nothing to do.
SELECT 1;
