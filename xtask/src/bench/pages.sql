-- Twenty workers, forty proxies, two writers; 100,000 missions of which 70,000 are completed, 5,000 failed, 2,000
-- canceled, 3,000 in the queue and 20,000 in the bank; ten entries of the log for each.
INSERT INTO public.workers (id, name, url, api_key, storage_domain)
SELECT 'wrk_' || lpad(n::text, 4, '0'), 'worker-' || n, 'http://127.0.0.1:1/' || n, 'k', '127.0.0.1:1'
FROM generate_series(1, 20) n;
UPDATE public.workers SET active = false;
INSERT INTO public.proxies (id, name, host, port, fail_count, active, last_used_at)
SELECT 'prx_' || lpad(n::text, 4, '0'), 'proxy-' || n, '127.0.0.1', 9000 + n, n % 4, n % 4 < 3, now()
FROM generate_series(1, 40) n;
INSERT INTO public.writers (id, name, url, api_key)
SELECT 'wrt_' || n, 'writer-' || n, 'http://127.0.0.1:1/w' || n, 'k' FROM generate_series(1, 2) n;

INSERT INTO public.missions (id, date_start, date_end, media_type, languages, status, checkpoint, worker_id, proxy_used,
    ads_count, error_code, error_message, retry_count, created_at, queued_at, started_at, finished_at, attempts)
SELECT 'mis_' || lpad(n::text, 32, '0'), DATE '2024-01-01' + n % 366, DATE '2024-01-01' + n % 366,
    (ARRAY['all', 'video', 'image'])[1 + n % 3], ARRAY[(ARRAY['pt', 'en', 'es'])[1 + n % 3]],
    (CASE WHEN n <= 70000 THEN 'completed' WHEN n <= 75000 THEN 'failed' WHEN n <= 77000 THEN 'canceled'
          ELSE 'queued' END)::public.mission_status,
    (CASE WHEN n <= 70000 THEN 'finalizado' WHEN n <= 80000 THEN 'atribuido' END)::public.checkpoint_type,
    CASE WHEN n <= 75000 THEN 'wrk_' || lpad((1 + n % 20)::text, 4, '0') END,
    CASE WHEN n <= 75000 THEN 'proxy-' || 1 + n % 40 END,
    CASE WHEN n <= 70000 THEN n % 2000 END,
    CASE WHEN n > 70000 AND n <= 75000 THEN (ARRAY['ERROR104', 'ERROR203', 'ERROR304'])[1 + n % 3] END,
    CASE WHEN n > 70000 AND n <= 75000 THEN 'timeout of job ' || n END,
    n % 3, now() - n * interval '5 minutes',
    CASE WHEN n <= 80000 THEN now() - (80000 - n) * interval '20 seconds' END,
    CASE WHEN n <= 75000 THEN now() - (80000 - n) * interval '20 seconds' END,
    CASE WHEN n <= 77000 THEN now() - (77000 - n) * interval '2 seconds' END, 1
FROM generate_series(1, 100000) n;

INSERT INTO public.mission_logs (id, mission_id, event, details, timestamp)
SELECT 'log_' || lpad((n * 10 + e)::text, 32, '0'), 'mis_' || lpad(n::text, 32, '0'),
    (ARRAY['mission_queued', 'session_started', 'session_ready', 'mission_assigned', 'scrape_started', 'scrape_progress',
           'scrape_completed', 'writer_started', 'writer_completed', 'mission_completed'])[e + 1]::public.mission_event,
    jsonb_build_object('worker_id', 'wrk_' || lpad((1 + n % 20)::text, 4, '0'), 'proxy_name', 'proxy-' || 1 + n % 40,
                       'duration_ms', n % 90000, 'ads_count', n % 2000),
    now() - (100000 - n) * interval '2 seconds' + e * interval '100 milliseconds'
FROM generate_series(1, 100000) n, generate_series(0, 9) e;
UPDATE public.mission_logs SET event = 'mission_failed', details = details || '{"error_code": "ERROR203"}'
WHERE event = 'mission_completed' AND mission_id > 'mis_' || lpad('70000', 32, '0') AND mission_id <= 'mis_' || lpad('75000', 32, '0');
UPDATE public.mission_logs SET event = 'scrape_failed', details = details || '{"error_code": "ERROR200"}'
WHERE event = 'scrape_completed' AND mission_id > 'mis_' || lpad('70000', 32, '0') AND mission_id <= 'mis_' || lpad('75000', 32, '0');
