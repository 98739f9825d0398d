// graphile-worker for Node: batched creation, its local queue, completion in batches. Complete is a row that is gone.
import pg from 'pg';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { perSecond, report, request } from './args.mjs';

const LIB = 'graphile-worker 0.17.3 (Node)';
const CONCURRENCY = 24;
const WARM_UP = 50;
const PICKUPS = 300;

const { command, n, database } = request();
const pool = new pg.Pool({ connectionString: database, max: 2 });
const utils = await makeWorkerUtils({ connectionString: database, logger: new Logger(() => () => {}) });
await utils.migrate();

function startWorker(noop) {
  return run({
    logger: new Logger(() => () => {}),
    noHandleSignals: true,
    taskList: { noop },
    preset: {
      worker: {
        connectionString: database,
        concurrentJobs: CONCURRENCY,
        maxPoolSize: CONCURRENCY + 1,
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
}

async function create() {
  const specs = JSON.stringify(Array.from({ length: n }, (_, id) => ({ identifier: 'noop', payload: { id } })));
  const start = performance.now();
  await pool.query(
    'SELECT 1 FROM graphile_worker.add_jobs(array(SELECT json_populate_recordset(NULL::graphile_worker.job_spec, $1::json)))',
    [specs],
  );
  return performance.now() - start;
}

// Looks at the database only when every handler has run, so that looking costs the worker nothing.
async function complete() {
  let entered = 0;
  let allEntered;
  const all = new Promise((resolve) => (allEntered = resolve));
  const start = performance.now();
  const runner = await startWorker(async () => {
    if (++entered === n) allEntered();
  });
  await all;
  for (;;) {
    const look = performance.now();
    const { rows } = await pool.query('SELECT count(*)::int AS left FROM graphile_worker._private_jobs');
    if (rows[0].left === 0) {
      await runner.stop();
      return look - start;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function pickup() {
  let entered;
  const runner = await startWorker(async () => entered());
  const client = await pool.connect();
  const samples = [];
  for (let id = 0; id < WARM_UP + PICKUPS; id++) {
    const done = new Promise((resolve) => (entered = resolve));
    const start = performance.now();
    await client.query("SELECT graphile_worker.add_job('noop', json_build_object('id', $1::int))", [id]);
    await done;
    if (id >= WARM_UP) samples.push(performance.now() - start);
  }
  client.release();
  await runner.stop();
  return samples.sort((a, b) => a - b);
}

if (command === 'create-complete') {
  const created = await create();
  const completed = await complete();
  report({ lib: LIB, n, create_per_s: perSecond(n, created), complete_per_s: perSecond(n, completed) });
} else if (command === 'pickup') {
  const samples = await pickup();
  report({ lib: LIB, pickup_p50_ms: samples[samples.length >> 1], pickup_p99_ms: samples[Math.floor(samples.length * 0.99)] });
} else {
  throw new Error(`unknown command ${command}`);
}
await utils.release();
await pool.end();
