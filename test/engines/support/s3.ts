import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PATIENCE_MS } from '../../support/patience';

export interface S3Server {
  /** Address of a bucket on it, as the settings take it; made when missing. */
  url(bucket: string): string;
  /** Where a bucket's objects lie as files. */
  folder(bucket: string): string;
  /** Runs the script that gives Lumio its account and bucket in the compose file; answers the account's address. */
  lumioAccount(password: string): { url: string; otherBucket: string };
  stop(): Promise<void>;
}

const PROGRAM = join(process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines'), 'versitygw/versitygw');

const SECRET = 'secret/of+test';

/** A real S3 server (versitygw) on loopback, over a folder of its own. */
export async function startS3(port: number): Promise<S3Server> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not there: run npm run test:engines, which installs it`);
  const data = mkdtempSync(join(tmpdir(), 'lumio-s3-'));
  const accounts = mkdtempSync(join(tmpdir(), 'lumio-s3-accounts-'));
  const flags = ['--port', `127.0.0.1:${port}`, '--iam-dir', accounts, '--quiet'];
  const server = spawn(PROGRAM, [...flags, 'posix', data], {
    env: { PATH: process.env.PATH, HOME: data, ROOT_ACCESS_KEY: 'root', ROOT_SECRET_KEY: SECRET },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await answers(port))) {
    if (server.exitCode !== null || Date.now() > deadline) throw new Error('the S3 server does not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const address = (key: string, secret: string, bucket: string) =>
    `s3://${key}:${encodeURIComponent(secret)}@127.0.0.1:${port}/${bucket}?region=us-east-1&tls=false&create=true`;
  return {
    url: (bucket) => address('root', SECRET, bucket),
    folder: (bucket) => join(data, bucket),
    lumioAccount(password) {
      execFileSync(join(__dirname, '../../../deploy/storage-account.sh'), {
        env: {
          PATH: `${dirname(PROGRAM)}:${process.env.PATH}`,
          ADMIN_ENDPOINT_URL: `http://127.0.0.1:${port}`,
          ADMIN_ACCESS_KEY_ID: 'root',
          ADMIN_SECRET_ACCESS_KEY: SECRET,
          STORAGE_PASSWORD: password,
        },
      });
      return { url: address('lumio', password, 'lumio-blobs'), otherBucket: address('lumio', password, 'other') };
    },
    async stop() {
      server.kill('SIGKILL');
      await ended;
      rmSync(data, { recursive: true, force: true });
      rmSync(accounts, { recursive: true, force: true });
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
