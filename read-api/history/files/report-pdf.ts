import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DomainError } from '../../../kernel/errors';
import { Slots } from '../../../lib/async/slots';
import type { DrawnReport } from './report-drawing';

/** Documents at a time, and those that may wait: each takes a thread and up to 256 MiB. */
const slots = new Slots(1);
const MAX_WAITING = 10;
const TIMEOUT_MS = 20_000;
let waiting = 0;

/**
 * The report as a PDF, made in a thread of its own.
 * @throws DomainError TOO_MANY_FILES where too many are waited for
 */
export async function reportPdf(report: DrawnReport): Promise<Uint8Array> {
  if (waiting >= MAX_WAITING) throw new DomainError('TOO_MANY_FILES');
  waiting += 1;
  try {
    return await slots.use(() => made(report));
  } finally {
    waiting -= 1;
  }
}

function made(report: DrawnReport): Promise<Uint8Array> {
  const worker = new Worker(join(__dirname, 'report-pdf-worker.js'), {
    workerData: report,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  return new Promise<Uint8Array>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no PDF within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread of a PDF ended with ${code}`)));
    worker.once('exit', () => clearTimeout(timer));
  }).finally(() => worker.terminate());
}
