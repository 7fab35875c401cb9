import { rmSync } from 'node:fs';
import type { TestCluster } from './global-setup';

export default async function teardown(): Promise<void> {
  const cluster = (globalThis as { lumioTestCluster?: TestCluster }).lumioTestCluster;
  await cluster?.postgres.stop();
  if (cluster) rmSync(cluster.data_dir, { recursive: true, force: true });
}
