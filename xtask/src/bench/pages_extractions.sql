-- The plan of 60 endpoints and 60 months: 3,600 tasks, of which 3,000 are complete; 100 pages of each, or two thirds of them.
INSERT INTO psa.pncp_extraction_tasks (task_id, endpoint_name, data_date, status, total_pages, total_records, discoveries, is_final, verdict)
SELECT 'endpoint_' || e || '_' || d::date, 'endpoint_' || e, d::date,
    CASE WHEN (e * 60 + extract(month FROM d)::int) % 6 > 0 THEN 'COMPLETE' ELSE (ARRAY['PARTIAL', 'FETCHING', 'FAILED', 'PENDING'])[1 + e % 4] END,
    100, 50000, 1, true, 'exact'
FROM generate_series(1, 60) e, generate_series(DATE '2020-01-01', DATE '2024-12-01', interval '1 month') d;
INSERT INTO psa.pncp_extraction_windows (task_id, number, first_day, last_day, base, total_pages, total_records)
SELECT task_id, 1, data_date, data_date + 27, 0, 100, 50000 FROM psa.pncp_extraction_tasks;
INSERT INTO psa.pncp_pages (task_id, page, records, total_records, total_pages, generation, response_id, bytes, body_hash, content_hash, fetched_at)
SELECT t.task_id, p, 500, 50000, 100, 1, md5(t.task_id || p)::uuid, 750000, repeat('a', 64), repeat('b', 32), now()
FROM psa.pncp_extraction_tasks t, generate_series(1, 100) p WHERE t.status = 'COMPLETE' OR p % 3 > 0;
INSERT INTO psa.pncp_raw_responses (id, endpoint_url, endpoint_name, response_code, response_content, data_date, page_size, task_id, page, outcome, elapsed_ms)
SELECT response_id, 'http://a', 'e', 200, '{"data":[]}', DATE '2020-01-01', 500, task_id, page, 'data', 5 FROM psa.pncp_pages;
