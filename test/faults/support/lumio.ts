import { type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { runningPostmaster, runningUrl } from '../../../engines/postgres/embedded/server';
import { PATIENCE_MS } from '../../support/patience';
import { Printed } from '../../support/printed';
import { type DevCredentials, runLumio, type ServerOptions, settingsOf, spawnLumio } from '../../support/server';
import { assertDisposable, disown, own } from './disposable';
import { embeddedEnds, type Ends } from './ends';
import { signal, signalTree } from './signals';
import { freePort } from './toxiproxy';

export interface LumioOptions {
  /** The database as the server reaches it, links and all; absent: the embedded one. */
  database_url?: string;
  /** The same database past every link, for checks. Default: `database_url`. */
  direct_url?: string;
  env?: Record<string, string>;
  /** Its data folder, from an earlier life of the installation. Default: a fresh one. */
  data_dir?: string;
  /** Where logs end that are not in its database. */
  ends?: Partial<Ends>;
  /** Node, and the checkout that it runs; without them those of the test. */
  program?: ServerOptions['program'];
  /** Starts it again whenever it ends by itself or is killed, as a supervisor does. */
  supervise?: boolean;
}

/** One Lumio process that may be hurt, on a port that stays the same over its lives. */
export class Lumio {
  credentials!: DevCredentials;
  /** How often it was started. */
  lives = 0;
  /** Nobody needs it any more: loads end. */
  disposed = false;
  /** Exit codes of lives that ended without a signal of ours, oldest first. */
  readonly ends: (number | null)[] = [];
  /** All errors that its lives printed. */
  readonly printed = new Printed();
  private child: ChildProcess | undefined;
  private ended: Promise<number | null> = Promise.resolve(null);
  private wanted = true;
  private serves = false;
  private starting: Promise<void> | undefined;

  private constructor(
    readonly base_url: string,
    readonly data_dir: string,
    private readonly env: Record<string, string>,
    private readonly options: LumioOptions,
  ) {}

  static async start(options: LumioOptions = {}): Promise<Lumio> {
    if (options.database_url) assertDisposable(options.database_url);
    const data_dir = options.data_dir ?? mkdtempSync(join(tmpdir(), 'lumio-faults-node-'));
    const port = await freePort();
    const env = {
      ...settingsOf(data_dir),
      LUMIO_PORT: String(port),
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
      ...(options.database_url && { LUMIO_DATABASE__URL: options.database_url }),
      ...options.env,
    };
    const lumio = new Lumio(`http://127.0.0.1:${port}`, data_dir, env, options);
    await lumio.start();
    return lumio;
  }

  get ws_url(): string {
    return `${this.base_url.replace(/^http/, 'ws')}/v1/ws`;
  }

  get pid(): number {
    return this.child!.pid!;
  }

  /** The last part of what all its lives printed. */
  output(): string {
    return this.printed.text();
  }

  /** Connection string of its database, past every link. */
  direct(): string {
    const url = this.options.direct_url ?? this.options.database_url ?? runningUrl(this.data_dir);
    if (!url) throw new Error('its database does not run');
    return url;
  }

  async query(sql: string, values: unknown[] = []): Promise<any[]> {
    const client = new pg.Client({ connectionString: this.direct(), connectionTimeoutMillis: 10_000 });
    client.on('error', () => undefined); // shows in the statement
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Where its logs end. */
  get ends_of_logs(): Ends {
    return { ...embeddedEnds((sql, values) => this.query(sql, values)), ...this.options.ends };
  }

  /** Resolves when it serves. @throws Error with its output when it ends before, or is not ready in time */
  async start(): Promise<void> {
    this.wanted = true;
    // A supervised one may have come by itself.
    if (this.serves && this.runs()) return;
    return (this.starting ??= this.launch().finally(() => (this.starting = undefined)));
  }

  private async launch(): Promise<void> {
    this.lives += 1;
    this.serves = false;
    const child = spawnLumio(['start'], this.env, this.options);
    this.child = child;
    own(child.pid!);
    let life = '';
    const take = (chunk: Buffer) => {
      life = (life + chunk.toString()).slice(-100_000);
      this.printed.take(chunk);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    this.ended = new Promise((done) => child.once('exit', (code) => done(code)));
    void this.ended.then((code) => {
      disown(child.pid!);
      if (child.signalCode !== null) this.printed.cut();
      if (child.signalCode === null) this.ends.push(code);
      if (this.options.supervise && this.wanted) {
        // A failed start ends too, and comes here again.
        setTimeout(() => void (this.wanted && this.start().catch(() => undefined)), 200);
      }
    });
    const deadline = Date.now() + 2 * PATIENCE_MS;
    while (!life.includes('lumio ready at')) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Lumio ended at its start:\n${life}`);
      if (Date.now() > deadline) throw new Error(`Lumio was not ready in time:\n${life}`);
      await new Promise((wait) => setTimeout(wait, 20));
    }
    this.serves = true;
    this.readCredentials();
  }

  /**
   * Its tokens last a quarter of an hour; while it runs it writes new ones before. Returns whether there are new ones.
   */
  readCredentials(): boolean {
    const path = join(this.data_dir, 'dev-credentials.json');
    if (!existsSync(path)) return false;
    const before = this.credentials?.access_token;
    this.credentials = JSON.parse(readFileSync(path, 'utf8')) as DevCredentials;
    return this.credentials.access_token !== before;
  }

  signal(name: NodeJS.Signals): void {
    signal(this.pid, name);
  }

  /** SIGKILL; a supervised one comes again by itself. */
  async kill(): Promise<void> {
    if (this.runs()) signal(this.pid, 'SIGKILL');
    await this.ended;
  }

  /** Its process lives, serving or not. */
  runs(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** SIGTERM; returns the exit code. It stays down. */
  async stop(): Promise<number | null> {
    this.wanted = false;
    await this.starting?.catch(() => undefined);
    if (this.runs()) signal(this.pid, 'SIGTERM');
    return this.ended;
  }

  /** SIGKILL to the embedded database and its backends. Lumio ends by itself then. */
  killDatabase(): void {
    const pid = runningPostmaster(join(this.data_dir, 'postgres'));
    if (pid === undefined) return;
    own(pid); // its data folder is ours
    signalTree(pid, 'SIGKILL');
    disown(pid);
  }

  /** A `lumio` command beside the running server. */
  async command(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    // A clock that jumps is the server's alone.
    const env = Object.fromEntries(Object.entries(this.env).filter(([name]) => name.startsWith('LUMIO_')));
    const url: Record<string, string> = this.options.database_url ? { LUMIO_DATABASE__URL: this.direct() } : {};
    return runLumio(args, { ...env, ...url });
  }

  /** The `lumio` command with the server's settings, to be killed on its way. */
  spawn(...args: string[]): ChildProcess {
    const url: Record<string, string> = this.options.database_url ? { LUMIO_DATABASE__URL: this.direct() } : {};
    const child = spawnLumio(args, { ...this.env, ...url });
    own(child.pid!);
    return child;
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    await this.stop();
    rmSync(this.data_dir, { recursive: true, force: true });
  }
}
