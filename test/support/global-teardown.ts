import { rmSync } from 'node:fs';
import type { TestCluster } from './global-setup';
import { endSharedServers } from './shared-server';

export default async function teardown(): Promise<void> {
  const cluster = (globalThis as { lumioTestCluster?: TestCluster }).lumioTestCluster;
  if (!cluster) return;
  try {
    await endSharedServers(cluster.data_dir);
  } finally {
    await cluster.postgres.stop();
    rmSync(cluster.data_dir, { recursive: true, force: true });
  }
}
