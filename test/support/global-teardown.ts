import { appendFileSync, rmSync } from 'node:fs';
import type { TestCluster } from './global-setup';
import { endSharedServers } from './shared-server';

export default async function teardown(): Promise<void> {
  const cluster = (globalThis as { lumioTestCluster?: TestCluster }).lumioTestCluster;
  if (!cluster) return;
  try {
    await endSharedServers(cluster.data_dir);
  } catch (error) {
    reportOutside(error instanceof Error ? error.message : String(error));
    throw error;
  } finally {
    await cluster.postgres.stop();
    rmSync(cluster.data_dir, { recursive: true, force: true });
  }
}

/** Notes a failure outside the test files for `scripts/second-look.mjs`. */
function reportOutside(outside: string): void {
  const file = process.env.CI_RESULTS_FILE;
  if (file) appendFileSync(file, `${JSON.stringify({ stage: process.env.CI_STAGE ?? '', outside })}\n`);
}
