import { parentPort, workerData } from 'node:worker_threads';
import { type DrawnReport, drawReport } from './report-drawing';

/** Thread that draws one report; see `reportPdf`. */
drawReport(workerData as DrawnReport).then(
  (bytes) => parentPort!.postMessage(bytes),
  (error: unknown) => {
    throw error;
  },
);
