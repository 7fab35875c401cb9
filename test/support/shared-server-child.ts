import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect } from '../../bin/connect';
import type { FullContext } from '../../cli/runtime/context';
import * as admin from '../../cli/admin/index';
import { KNOWN_FLAGS, PLAN_CATEGORIES } from '../../domain/operators/feature-flags';
import { startServer, type TestServer } from './server';
import type { MadeAccount, MadeMember, SharedServerFacts } from './shared-server';

/**
 * A started server, and an operator beside it who acts by `POST /<name>` with the arguments as JSON: what `lumio admin`
 * does, without a process for each. Ends with its standard input, or by a signal. What the server logged as an error is
 * then left in FILE.errors, which fails the run.
 * Usage: node shared-server-child.js FILE
 */
async function main(file: string): Promise<void> {
  const server = await startServer({ env: { LUMIO_TRUSTED_PROXIES: '127.0.0.1' } });
  try {
    await operate(server, file);
  } catch (error) {
    await server.dispose();
    throw error;
  }
}

/** The settings of the server alone: what is the tests' is none. */
async function connectTo(server: TestServer): Promise<FullContext> {
  const own = { ...process.env };
  for (const name of Object.keys(own)) if (name.startsWith('LUMIO_')) delete process.env[name];
  Object.assign(process.env, server.env);
  try {
    return await connect('admin');
  } finally {
    Object.assign(process.env, own);
  }
}

async function operate(server: TestServer, file: string): Promise<void> {
  const engines = await connectTo(server);
  const context = await admin.createAdminContext(engines);

  const features = KNOWN_FLAGS.filter(({ category }) => PLAN_CATEGORIES.has(category)).map(({ key }) => [key, true]);
  let made = 0;
  const acts = {
    ...admin,
    /** A new user, by a name that nobody else has. */
    async user(): Promise<{ user_id: string; display_name: string }> {
      made += 1;
      const display_name = `Person ${process.pid}-${made}`;
      const { user_id } = await admin.createUser(context, { display_name });
      return { user_id, display_name };
    },
    async session(user_id: string, account_id: string): Promise<MadeMember> {
      const { access, refresh } = await admin.openUserSession(context, user_id, account_id);
      return { user_id, account_id, access_token: access.token, refresh_token: refresh.token };
    },
    async account(): Promise<MadeAccount> {
      const { user_id, display_name } = await acts.user();
      const name = `Account of ${display_name}`;
      const { account_id } = await admin.createAccount(context, { owner_id: user_id, name });
      await admin.setFeatures(context, account_id, Object.fromEntries(features));
      return { ...(await acts.session(user_id, account_id)), name, display_name };
    },
    async member(account_id: string, role: string): Promise<MadeMember> {
      const { user_id } = await acts.user();
      await admin.setMembership(context, account_id, user_id, role);
      return acts.session(user_id, account_id);
    },
  };
  const operator = createServer((request, response) => {
    const act = async (): Promise<unknown> => {
      const name = request.url!.slice(1);
      const args = JSON.parse(await text(request)) as unknown[];
      const of = acts as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
      return of[name]!(...(name in admin ? [context, ...args] : args));
    };
    act().then(
      (answer) => response.end(JSON.stringify(answer ?? null)),
      (error: unknown) => response.writeHead(400).end(error instanceof Error ? error.message : String(error)),
    );
  });
  await once(operator.listen(0, '127.0.0.1'), 'listening');

  let ended = false;
  const end = async () => {
    if (ended) return;
    ended = true;
    operator.closeAllConnections();
    operator.close();
    await engines.close();
    const errors = server.printed.unexcused();
    if (errors.length > 0) writeFileSync(`${file}.errors`, JSON.stringify(errors, null, 2));
    await server.dispose();
    process.exit(0);
  };
  process.once('SIGTERM', () => void end());
  process.stdin.resume().once('end', () => void end());

  const { base_url, ws_url, metrics_url, credentials, data_dir, env } = server;
  const { port } = operator.address() as AddressInfo;
  const operator_url = `http://127.0.0.1:${port}`;
  const database_url = server.database!.url;
  const facts: SharedServerFacts = {
    pid: process.pid,
    ...{ base_url, ws_url, metrics_url, operator_url, database_url, credentials, data_dir, env },
  };
  writeFileSync(file, JSON.stringify(facts));
  process.stdout.write('ready\n');
}

main(process.argv[2]!).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
