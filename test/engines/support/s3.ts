import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATIENCE_MS } from '../../support/patience';

export interface S3Server {
  /** Address of a bucket on it, as the settings take it; made when missing. */
  url(bucket: string): string;
  /** Where a bucket's objects lie as files. */
  folder(bucket: string): string;
  stop(): Promise<void>;
}

const PROGRAM = join(process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines'), 'versitygw/versitygw');

/** A real S3 server (versitygw) on loopback, over a folder of its own. */
export async function startS3(port: number): Promise<S3Server> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not there: run npm run test:engines, which installs it`);
  const data = mkdtempSync(join(tmpdir(), 'lumio-s3-'));
  const server = spawn(PROGRAM, ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', data], {
    env: { PATH: process.env.PATH, HOME: data, ROOT_ACCESS_KEY: 'lumio', ROOT_SECRET_KEY: 'secret/of+test' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await answers(port))) {
    if (server.exitCode !== null || Date.now() > deadline) throw new Error('the S3 server does not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url: (bucket) =>
      `s3://lumio:${encodeURIComponent('secret/of+test')}@127.0.0.1:${port}/${bucket}?region=us-east-1&tls=false&create=true`,
    folder: (bucket) => join(data, bucket),
    async stop() {
      server.kill('SIGKILL');
      await ended;
      rmSync(data, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
