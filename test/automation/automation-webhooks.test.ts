import { createHmac, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { graphProblem } from '../../domain/automation/automation-graphs';
import { leadsElsewhere, webhookUrlProblem } from '../../domain/automation/webhooks';
import { webhookHeaders, webhookSecret } from '../../lib/hash/webhook-signatures';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import {
  createWebhookCalls,
  disableFailing,
  keepWebhookSecret,
  newWebhookSecret,
  noteWebhook,
} from '../../services/automation/automations/webhooks';
import { createHttpClients } from '../../vendors/http/client';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { type TestDatabase, testDatabase } from '../support/database';
import { ownerAndStranger, sharedServer } from '../support/shared-server';
import { eventually } from '../support/vendor-cloud';

describe('an address of a webhook', () => {
  test.each([
    'http://example.com/',
    'ftp://example.com/',
    'example.com',
    'https://example.com:8443/',
    'https://user:pass@example.com/',
    'https://user@example.com/',
    'https://{{var.host}}/',
    'https://{{user.name}}.example.com/',
    'https:///{{var.host}}/',
    'https://\\{{user.name}}.example.com/',
    'https://\t/{{var.host}}/',
    'https:///example.com/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://10.1.2.3/',
    'https://localhost/',
    'https://metadata.google.internal/',
    'https://router/',
  ])('%s is refused', (url) => {
    expect(webhookUrlProblem(url, false)).not.toBeNull();
    const [trigger, node] = [randomUUID(), randomUUID()];
    const nodes = [
      { id: trigger, type: 'trigger:manual', config: {} },
      { id: node, type: 'action:send_webhook', config: { url } },
    ];
    const graph = { nodes, edges: [{ from: trigger, to: node, output: 'next' }] };
    expect(graphProblem(graph)).toContain(`node ${node}: config.url: `);
  });

  test('is https on port 443 of a public host, with variables in path and query', () => {
    for (const url of ['https://example.com', 'https://example.com:443/a', 'https://8.8.8.8/{{var.x}}?q={{user.name}}'])
      expect(webhookUrlProblem(url, false)).toBeNull();
    for (const url of ['http://127.0.0.1:8080/', 'http://localhost:1/', 'https://10.0.0.1:8443/'])
      expect(webhookUrlProblem(url, true)).toBeNull();
    for (const url of ['http://example.com/', 'https://169.254.169.254/', 'http://169.254.169.254/'])
      expect(webhookUrlProblem(url, true)).not.toBeNull();
  });
});

test.each([
  ['https://h/a/{{x}}/b', 'https://h/a/../b', true],
  ['https://h/a/{{x}}', 'https://h/a/.', true],
  ['https://h/a/.{{x}}', 'https://h/a/..', true],
  ['https://h/a\\%2e{{x}}?q', 'https://h/a\\%2e.?q', true],
  ['https://h/a/../{{x}}', 'https://h/a/../..', true],
  ['https://h/a/../{{x}}', 'https://h/a/../b', false],
  ['https://h/{{x}}?q={{x}}', 'https://h/...?q=/../', false],
  ['https://h/a#{{x}}', 'https://h/a#/../', false],
])('%s filled in as %s leads to another path: %s', (template, address, expected) => {
  expect(leadsElsewhere(template, address)).toBe(expected);
});

test('a signature is that of Standard Webhooks, by each secret', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' };
  const headers = webhookHeaders(message, [secret, webhookSecret(Buffer.alloc(32, 1))]);
  expect(headers['webhook-signature']!.split(' ')[0]).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  expect(headers['webhook-signature']!.split(' ')).toHaveLength(2);
});

describe('webhooks', () => {
  let t: TestDatabase;
  let target: Server;
  let url: string;
  let status = 200;
  let headers: Record<string, string> = {};
  const received: { headers: IncomingMessage['headers']; body: string }[] = [];
  const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
  const http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
  const guarded = createHttpClients({ metrics: createPrometheusMetrics({}) });
  beforeAll(async () => {
    t = await testDatabase();
    target = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
        response.writeHead(status, headers).end();
      });
    });
    await new Promise<void>((listening) => target.listen(0, '127.0.0.1', listening));
    url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/hook`;
  });
  afterAll(async () => {
    await Promise.all([http.close(), guarded.close()]);
    target?.closeAllConnections();
    await new Promise((closed) => target.close(closed));
    await t?.drop();
  });

  const of = { automation_id: randomUUID(), account_id: randomUUID() };
  const send = (clients = http, address = url) =>
    createWebhookCalls({ db: t.db, secrets, http: clients }).send({ ...of, id: 'step', url: address, body: '{"a":1}' });

  test('are signed by the newest secrets alone, and a rotation deletes those that have ended', async () => {
    const rotated = { automation_id: randomUUID(), account_id: randomUUID() };
    const made = Array.from({ length: 12 }, newWebhookSecret);
    for (const one of made) await keepWebhookSecret({ db: t.db, secrets }, rotated, one);
    const names = made.map(({ secret_hash }) => secret_hash);
    const activate = (hash: string, hours: number, ends: number | null) =>
      t.db.query(
        `update automation_webhook_secrets set active_since = clock_timestamp() - make_interval(hours => $2),
           ends_at = clock_timestamp() + make_interval(hours => $3::int) where secret_hash = $1`,
        [hash, hours, ends],
      );
    for (const [at, name] of names.entries()) await activate(name, at, at === 0 ? null : 1);
    await createWebhookCalls({ db: t.db, secrets, http }).send({ ...rotated, id: 'step', url, body: '{}' });
    const { headers: sent, body } = received.pop()!;
    const message = { id: 'step', timestamp: Number(sent['webhook-timestamp']), body };
    const newest = made.slice(0, 10).map(({ secret }) => secret);
    expect(sent['webhook-signature']).toBe(webhookHeaders(message, newest)['webhook-signature']);
    for (const name of names.slice(3)) await activate(name, 30, -1);
    await keepWebhookSecret({ db: t.db, secrets }, rotated, newWebhookSecret());
    const left = await t.db.query('select 1 from automation_webhook_secrets where automation_id = $1', [
      rotated.automation_id,
    ]);
    expect(left).toHaveLength(4);
  });

  test('arrive signed by one secret, and fail for redirects, other answers and addresses that are not public', async () => {
    expect(await Promise.all([send(), send()])).toEqual([{ status: 'sent' }, { status: 'sent' }]);
    const [row] = await t.db.query<{ sealed: string }>(
      'select sealed from automation_webhook_secrets where automation_id = $1',
      [of.automation_id],
    );
    const secret = secrets.open(row!.sealed, `automation-webhook ${of.automation_id}`).toString();
    for (const { headers: sent, body } of received) {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      const signed = createHmac('sha256', key).update(`step.${String(sent['webhook-timestamp'])}.${body}`);
      expect(sent).toMatchObject({ 'webhook-id': 'step', 'content-type': 'application/json' });
      expect(sent['webhook-signature']).toBe(`v1,${signed.digest('base64')}`);
    }
    expect(received).toHaveLength(2);
    [status, headers] = [302, { location: 'http://127.0.0.1/elsewhere' }];
    expect(await send()).toEqual({ status: 'failed', error: 'redirected' });
    [status, headers] = [500, {}];
    expect(await send()).toEqual({ status: 'failed', error: 'status_500' });
    const count = received.length;
    for (const address of [url, 'https://localhost/', 'https://169.254.169.254/', 'https://10.0.0.1:8443/'])
      expect(await send(guarded, address)).toEqual({ status: 'failed', error: 'not_sent' });
    expect(received).toHaveLength(count);
  });

  test('that fail for a day without a success are found, others are not', async () => {
    const note = (success: boolean) => t.db.transaction((tx) => noteWebhook(tx, of, success));
    const later = (interval: string) =>
      t.db.query(`update automation_webhook_failures set failing_since = failing_since - interval '${interval}'`);
    const events = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
    await note(false);
    await later('25 hours');
    // A failure alone is no day of failures.
    await t.db.query('update automation_webhook_failures set last_failed_at = failing_since');
    expect(await disableFailing({ db: t.db, events })).toBe(0);
    await note(true);
    await note(false);
    await later('23 hours');
    await note(false);
    expect(await disableFailing({ db: t.db, events })).toBe(0);
    await later('1 hour');
    await note(false);
    expect(await disableFailing({ db: t.db, events })).toBe(1);
    expect(await t.db.query('select * from automation_webhook_failures')).toEqual([]);
    await events.close();
  });
});

test('a secret is rotated by its account alone, shown once, and both sign for a day', async () => {
  const server = await sharedServer();
  const { owner, stranger, account } = await ownerAndStranger(server);
  const { id } = (await owner.send('POST', '/v1/automations', { name: 'Hook' })).body.data;
  const path = `/v1/automations/${id}/rotate-webhook-secret`;
  const first = await owner.send('POST', path, {});
  expect(first.body.data).toEqual({ secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) });
  const second = await owner.gql(`mutation { rotateAutomationWebhookSecret(id: "${id}") { secret } }`);
  expect(second.data.rotateAutomationWebhookSecret.secret).not.toBe(first.body.data.secret);
  const db = new PostgresDatabase({ url: server.database_url, name: 'test', size: 1 });
  const rows = async () =>
    (
      await db.query(
        `select active_since is not null as active, round(extract(epoch from ends_at - clock_timestamp()) / 3600) as hours
         from automation_webhook_secrets where automation_id = $1 order by active_since`,
        [id],
      )
    ).map(({ active, hours }) => [active, hours === null ? null : Number(hours)]);
  expect(await rows()).toEqual([
    [true, 24],
    [true, null],
  ]);
  expect((await stranger.send('POST', path, {})).status).toBe(404);
  expect((await owner.send('POST', path.replace(id, randomUUID()), {})).status).toBe(404);
  const moderator = server.client((await server.member(account.account_id, 'moderator')).access_token);
  expect((await moderator.send('POST', path, {})).status).toBe(403);
  await owner.send('DELETE', `/v1/automations/${id}`, undefined);
  await eventually(async () => ((await rows()).length === 0 ? true : undefined), 'the end of the secrets');
  expect((await owner.send('POST', path, {})).status).toBe(404);
  await db.close();
});
