// RabbitMQ by itself: persistent messages to a quorum queue, confirmed in batches of 500. What a
// sender that keeps its tasks in a database as well can be measured against.
import amqp from 'amqplib';
import { perSecond, report, request } from './args.mjs';

const LIB = 'RabbitMQ, confirmed publish';
const QUEUE = 'bench.publish';
const BATCH = 500;

const { command, n, broker } = request();
if (command !== 'publish') throw new Error(`unknown command ${command}`);

const connection = await amqp.connect(broker);
const channel = await connection.createConfirmChannel();
await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
const body = Buffer.from(JSON.stringify({ taskId: '0'.repeat(36), type: 'BENCH', payload: { id: 0 }, retryCount: 0 }));

async function publish(count) {
  const start = performance.now();
  for (let sent = 0; sent < count; sent += BATCH) {
    for (let at = sent; at < Math.min(count, sent + BATCH); at++) {
      channel.sendToQueue(QUEUE, body, { persistent: true, mandatory: true, messageId: `m${at}` });
    }
    await channel.waitForConfirms();
  }
  return performance.now() - start;
}

await publish(4 * BATCH);
const took = await publish(n);
report({ lib: LIB, n, publish_per_s: perSecond(n, took) });
await channel.deleteQueue(QUEUE);
await connection.close();
