import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import databaseTeardown from '../../support/global-teardown';

/** Ends what test files left running, then the run's PostgreSQL. */
export default async function teardown(): Promise<void> {
  const pids = join(process.env.LUMIO_ENGINES_RUN ?? '', 'pids');
  if (process.env.LUMIO_ENGINES_RUN && existsSync(pids)) {
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n').map(Number)) endEngine(pid);
  }
  await databaseTeardown();
}

/** Only a process that still is one of our engines: the number may be another's by now. */
function endEngine(pid: number): void {
  const command = `/proc/${pid}/cmdline`;
  if (
    existsSync(command) &&
    /kafka\.Kafka|redis-server|versitygw|toxiproxy|caddy/.test(readFileSync(command, 'utf8'))
  ) {
    process.kill(pid, 'SIGKILL');
  }
}
