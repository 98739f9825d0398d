-- 100,000 tasks of five types that nobody runs, with ten events each: 80,000 completed, 5,000 failed, 2,000 cancelled, 13,000 that
-- wait, half of them for their time. A thousand dead letters.
INSERT INTO kodus_workflow.tasks (id, type, status, state, progress, created_at, updated_at, version, attempts, error, run_at)
SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
    (ARRAY['report', 'mail', 'resize', 'index', 'invoice'])[1 + n % 5],
    s.status, initcap(lower(s.status)), CASE s.status WHEN 'COMPLETED' THEN 100 ELSE 0 END,
    now() - (100000 - n) * interval '5 seconds', now() - (100000 - n) * interval '5 seconds', 9, 1,
    CASE s.status WHEN 'FAILED' THEN 'the source answered 404 for ' || n END,
    CASE WHEN s.status = 'PENDING' AND n % 2 = 0 THEN now() + interval '1 hour' END
FROM generate_series(1, 100000) n,
    LATERAL (SELECT CASE WHEN n <= 80000 THEN 'COMPLETED' WHEN n <= 85000 THEN 'FAILED' WHEN n <= 87000 THEN 'CANCELLED'
                         ELSE 'PENDING' END AS status) s;
INSERT INTO kodus_workflow.task_inputs (task_id, payload)
SELECT id, '{"url": "https://example.org/a"}' FROM kodus_workflow.tasks;
INSERT INTO kodus_workflow.task_events (id, task_id, status, state, detail, actor, created_at, version)
SELECT ('01900000-0000-7000-9000-' || lpad((n * 10 + e)::text, 12, '0'))::uuid,
    ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'IN_PROGRESS', 'step ' || e,
    jsonb_build_object('action', 'update', 'progress', e * 10), 'WORKER',
    now() - (100000 - n) * interval '5 seconds' + e * interval '1 millisecond', e
FROM generate_series(1, 100000) n, generate_series(0, 9) e;
INSERT INTO kodus_workflow.task_dead_letters (id, task_id, type, reason, created_at)
SELECT ('01900000-0000-7000-a000-' || lpad(n::text, 12, '0'))::uuid,
    ('01900000-0000-7000-8000-' || lpad((80000 + n)::text, 12, '0'))::uuid, 'mail', 'the source answered 404', now()
FROM generate_series(1, 1000) n;
