import { KurrentServer } from './server';

/** The test server as a process of its own: prints its connection string, and keeps its log until it is ended. */
async function main(): Promise<void> {
  const server = await KurrentServer.start();
  process.once('SIGTERM', () => void server.stop());
  process.stdout.write(`${server.url()}\n`);
}

void main();
