import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type * as admin from '../../cli/admin/index';
import { doorAt, type Door } from './door';
import { PATIENCE_MS } from './patience';
import type { DevCredentials } from './server';
import { ApiClient } from './vendor-cloud';

/** What a test finds of a server that somebody has started for it. */
export interface SharedServerFacts {
  pid: number;
  base_url: string;
  ws_url: string;
  metrics_url: string;
  /** The operator beside it. */
  operator_url: string;
  database_url: string;
  /** Of its demo data, which all files share: nothing there is changed. */
  credentials: DevCredentials;
  data_dir: string;
  env: Record<string, string>;
}

export interface MadeMember {
  user_id: string;
  account_id: string;
  access_token: string;
  refresh_token: string;
}

export interface MadeAccount extends MadeMember {
  name: string;
  display_name: string;
}

type Admin = typeof admin;
type Without<Args> = Args extends [unknown, ...infer Rest] ? Rest : never;
/** What `lumio admin` does, by the names of `cli/admin/`, without their services. */
type Operator = { [Name in keyof Admin]: (...args: Without<Parameters<Admin[Name]>>) => ReturnType<Admin[Name]> };

export interface SharedServer extends SharedServerFacts {
  operator: Operator;
  /** A new user, who belongs to no account. */
  user(): Promise<{ user_id: string; display_name: string }>;
  /** A new session of a user on one of their accounts. */
  session(user_id: string, account_id: string): Promise<MadeMember & { door: Door }>;
  /** A new account with every feature, its owner, and a session of theirs. */
  account(): Promise<MadeAccount & { door: Door }>;
  /** A new user as a member of an account (`administrator`, `moderator`, `viewer`), and a session of theirs. */
  member(account_id: string, role: string): Promise<MadeMember & { door: Door }>;
  /** Who brings this token, from an address that nobody else asks from; the empty text for none. */
  door(token: string): Door;
  /** The same as a client of the API. */
  client(token: string): ApiClient;
}

/** What a test of an account's own things asks: its owner, and the owner of another one. */
export interface OwnerAndStranger {
  account: MadeAccount;
  owner: ApiClient;
  stranger: ApiClient;
}

export async function ownerAndStranger(server: SharedServer): Promise<OwnerAndStranger> {
  const [account, other] = [await server.account(), await server.account()];
  return { account, owner: server.client(account.access_token), stranger: server.client(other.access_token) };
}

/**
 * The server that all files of a test worker share, started by the first that asks. A file makes accounts of its own on
 * it, in milliseconds, and changes nothing that others see.
 */
export async function sharedServer(): Promise<SharedServer> {
  const file = join(runFolder(), `shared-server-${process.env.JEST_WORKER_ID ?? '1'}.json`);
  if (!existsSync(file)) await start(file);
  const facts = JSON.parse(readFileSync(file, 'utf8')) as SharedServerFacts;
  const act = async <T>(name: string, ...args: unknown[]): Promise<T> => {
    const body = JSON.stringify(args);
    const response = await fetch(`${facts.operator_url}/${name}`, { method: 'POST', body });
    const answer = await response.text();
    if (!response.ok) throw new Error(`the operator's ${name}: ${answer}`);
    return JSON.parse(answer) as T;
  };
  // Files that share an address would use up each other's requests.
  const door = (token: string) => doorAt(facts.base_url, token, { 'x-forwarded-for': someAddress() });
  const withDoor = async <T extends MadeMember>(made: Promise<T>) => ({
    ...(await made),
    door: door((await made).access_token),
  });
  return {
    ...facts,
    door,
    client: (token) => new ApiClient(facts.base_url, token, { 'x-forwarded-for': someAddress() }),
    operator: new Proxy({} as Operator, { get: (_target, name) => act.bind(null, String(name)) }),
    user: () => act('user'),
    session: (user_id, account_id) => withDoor(act<MadeMember>('session', user_id, account_id)),
    account: () => withDoor(act<MadeAccount>('account')),
    member: (account_id, role) => withDoor(act<MadeMember>('member', account_id, role)),
  };
}

/** Ends those of the run. @throws Error what they logged as errors */
export async function endSharedServers(folder: string): Promise<void> {
  for (const name of readdirSync(folder).filter((one) => /^shared-server-\d+\.json$/.test(one)))
    await ended((JSON.parse(readFileSync(join(folder, name), 'utf8')) as SharedServerFacts).pid);
  const errors = readdirSync(folder).filter((one) => one.endsWith('.errors'));
  if (errors.length === 0) return;
  const texts = errors.map((name) => readFileSync(join(folder, name), 'utf8'));
  throw new Error(`the server that test files share logged errors:\n${texts.join('\n')}`);
}

const runFolder = (): string => {
  const folder = process.env.LUMIO_TEST_FOLDER;
  if (!folder) throw new Error('the run has no folder: start tests with npm test');
  return folder;
};

async function start(file: string): Promise<void> {
  const script = join(__dirname, '../../dist/test/support/shared-server-child.js');
  const child = spawn(process.execPath, ['--enable-source-maps', script, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise<void>((ready, fail) => {
    child.stdout.once('data', () => ready());
    child.once('exit', (code) => fail(new Error(`the shared server ended with code ${code} before it was ready`)));
  });
  child.removeAllListeners('exit');
  child.stdout.destroy();
  // It lives as long as the worker, whose end closes its standard input, and holds nothing up.
  child.unref();
  (child.stdin as Socket).unref();
}

/** Signals a process and waits until it is gone. */
async function ended(pid: number): Promise<void> {
  for (let signal: NodeJS.Signals | 0 = 'SIGTERM', until = Date.now() + PATIENCE_MS; Date.now() < until; signal = 0) {
    try {
      process.kill(pid, signal);
    } catch {
      return; // there is no such process
    }
    await new Promise((resume) => setTimeout(resume, 20));
  }
  throw new Error(`the shared server ${pid} did not end`);
}

const someAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
