import { KurrentCluster } from './cluster';

/**
 * Two test nodes as a process of its own: prints their connection string, keeps their log until it is ended; SIGUSR2
 * moves the lead.
 */
async function main(): Promise<void> {
  const cluster = await KurrentCluster.start(2);
  process.on('SIGUSR2', () => cluster.elect(1 - cluster.nodes.indexOf(cluster.leader!)));
  process.once('SIGTERM', () => void cluster.stop());
  process.stdout.write(`${cluster.url()}\n`);
}

void main();
