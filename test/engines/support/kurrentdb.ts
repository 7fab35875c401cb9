import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const SERVER = join(__dirname, '../../../dist/test/engines/kurrentdb-server/main.js');

export interface Kurrent {
  /** As the settings take it. */
  url: string;
  /** Moves the lead to the other node. */
  elect(): void;
  stop(): void;
}

/** Two test nodes of KurrentDB's protocol in a process of their own, over an empty log. */
export async function startKurrent(): Promise<Kurrent> {
  const child = spawn(process.execPath, [SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    url: line.toString().trim(),
    elect: () => void child.kill('SIGUSR2'),
    stop: () => void child.kill('SIGTERM'),
  };
}
