import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as prometheus from 'prom-client';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { listenMetrics } from '../../api/health/metrics-listener';
import { documentedSeries, queryableNames, servedSeries } from '../support/metrics';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';

const operating = (file: string) => readFileSync(join(__dirname, '../../docs/operating', file), 'utf8');

/** Sums the samples of a series whose labels contain all these. */
function valueOf(exposition: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const lines = exposition
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((text) => line.includes(text)));
  if (lines.length === 0) return undefined;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

test('series are served as the library itself would serve them', async () => {
  const buckets = [0.005, 0.1, 2.5];
  const ours = createPrometheusMetrics({ node: 'n' });
  const registry = new prometheus.Registry();
  registry.setDefaultLabels({ node: 'n' });
  const common = { help: 'Help\nof "it"', registers: [registry] };
  const theirs = {
    bare: new prometheus.Counter({ ...common, name: 'bare_total' }),
    counted: new prometheus.Counter({ ...common, name: 'counted_total', labelNames: ['vendor', 'outcome'] }),
    held: new prometheus.Gauge({ ...common, name: 'held', labelNames: ['topic'] }),
    empty: new prometheus.Histogram({ ...common, name: 'empty_seconds', buckets }),
    took: new prometheus.Histogram({ ...common, name: 'took_seconds', buckets, labelNames: ['method', 'status'] }),
  };
  ours.counter('bare_total', common.help);
  const counted = ours.counter('counted_total', common.help, ['vendor', 'outcome']);
  const held = ours.gauge('held', common.help, ['topic']);
  ours.histogram('empty_seconds', common.help, buckets);
  const took = ours.histogram('took_seconds', common.help, buckets, ['method', 'status']);
  const served = async () => {
    const names = new Set(Object.values(theirs).map((one) => (one as unknown as { name: string }).name));
    const series = (await ours.render()).split('\n\n');
    return series.filter((text) => names.has(text.split(' ')[2]!)).join('\n\n');
  };
  for (let round = 0; round < 2; round += 1) {
    for (const [vendor, outcome, amount] of [
      ['kick', 'stored', 1],
      ['trovo', 'stored', 0],
      ['kick', 'a "quoted"\nline', 3],
      ['trovo', undefined, 2],
    ] as const) {
      const labels = { vendor, ...(outcome !== undefined && { outcome }) };
      theirs.counted.inc(labels, amount);
      counted.inc(amount, labels);
    }
    theirs.held.set({ topic: 't' }, round - 5);
    held.set(round - 5, { topic: 't' });
    for (const value of [0, 0.005, 0.0051, 2.5, 3, -1]) {
      for (const status of ['200', '503']) {
        theirs.took.observe({ method: 'GET', status }, value);
        // In whatever order the labels come.
        took.observe(value, round === 0 ? { method: 'GET', status } : { status, method: 'GET' });
      }
    }
    expect((await served()).trim()).toBe((await registry.metrics()).trim());
  }
  expect(() => counted.inc(-1, { vendor: 'kick' })).toThrow();
  expect(() => counted.inc(1, { vendor: 'kick', another: 'x' })).toThrow('another');
  expect(() => took.observe(Number.NaN, {})).toThrow(TypeError);
});

describe('metrics', () => {
  let server: TestServer;
  let socket: Client;
  let scrape: () => Promise<string>;

  beforeAll(async () => {
    server = await startServer();
    scrape = async () => (await fetch(server.metrics_url)).text();
    socket = await Client.open(server.ws_url, server.credentials.access_token);
    await socket.subscribe(`events:${server.credentials.account_id}`);
  });
  afterAll(async () => {
    socket?.end();
    await server?.dispose();
  });

  test('what is done is counted, in every part that did it', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    const api = new ApiClient(server.base_url, server.credentials.access_token);
    expect((await vendors.kickFollow(31)).status).toBe(200);
    expect((await vendors.post('/v1/webhooks/kick', '{}', {})).status).toBe(401);
    expect((await api.send('POST', '/v1/api-keys', { label: 'Counted', permissions: ['events:read'] })).status).toBe(
      201,
    );
    await socket.next((message) => message.event_type === 'kick:follower', 'the follower');
    const expected: [string, Record<string, string>, (value: number) => boolean][] = [
      ['lumio_webhooks_total', { vendor: 'kick', outcome: 'stored' }, (value) => value === 1],
      ['lumio_webhooks_total', { vendor: 'kick', outcome: 'refused' }, (value) => value === 1],
      ['lumio_broker_publish_seconds_count', { topic: 'platform-events', outcome: 'stored' }, (value) => value === 1],
      ['lumio_broker_records_published_total', { topic: 'platform-events' }, (value) => value === 1],
      ['lumio_broker_publishes_waiting', { topic: 'platform-events' }, (value) => value === 0],
      ['lumio_event_store_append_seconds_count', { outcome: 'stored' }, (value) => value >= 1],
      ['lumio_event_store_events_total', {}, (value) => value >= 1],
      ['lumio_event_store_appends_waiting', {}, (value) => value === 0],
      ['lumio_projection_records_total', { projection: 'event-log' }, (value) => value === 1],
      ['lumio_projection_batch_records_count', { projection: 'event-log' }, (value) => value === 1],
      ['lumio_projection_lag_records', { projection: 'event-log' }, (value) => value === 0],
      ['lumio_projection_lag_seconds', { projection: 'event-log' }, (value) => value === 0],
      ['lumio_projection_state', { projection: 'event-log', state: 'running' }, (value) => value === 1],
      ['lumio_projection_dead_letters', { projection: 'event-log' }, (value) => value === 0],
      ['lumio_db_dead_rows', { table: 'broker_partitions' }, (value) => value >= 0],
      ['lumio_db_live_rows', { table: 'outbox_heads' }, (value) => value >= 0],
      ['lumio_websocket_sessions', {}, (value) => value === 1],
      ['lumio_websocket_tail_silent_seconds', {}, (value) => value >= 0],
      ['lumio_websocket_channels', {}, (value) => value === 1],
      ['lumio_websocket_messages_sent_total', {}, (value) => value === 1],
      ['lumio_websocket_queued_messages', {}, (value) => value === 0],
      ['lumio_websocket_blocked_sessions', {}, (value) => value === 0],
      ['lumio_event_loop_lag_seconds', { quantile: 'max' }, (value) => value > 0],
      ['lumio_db_pool_waiting', { pool: 'main' }, (value) => value === 0],
      ['lumio_relay_lost_total', {}, (value) => value === 0],
      ['http_requests_total', { route: '/v1/webhooks/kick', status: '200' }, (value) => value === 1],
    ];
    let missing: unknown = expected;
    await eventually(async () => {
      const text = await scrape();
      missing = expected
        .map(([name, labels, holds]) => ({ name, labels, value: valueOf(text, name, labels), holds }))
        .filter(({ value, holds }) => value === undefined || !holds(value));
      return (missing as unknown[]).length === 0 || undefined;
    }, 'the counts').catch(() => undefined);
    expect(missing).toEqual([]);
  });

  test('a parked delivery waits in a gauge', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    expect((await vendors.trovo({ message_id: 'no-type', uid: '1' })).status).toBe(200);
    await eventually(
      async () => (valueOf(await scrape(), 'lumio_webhook_dead_letters', { vendor: 'trovo' }) ?? 0) > 0 || undefined,
      'the dead letter',
    );
  });

  test('docs/operating/metrics.md lists exactly what is served', async () => {
    const served = servedSeries(await scrape());
    const documented = documentedSeries();
    const ours = [...served.keys()].filter((name) => !/^(?:process|nodejs)_/.test(name));
    expect(ours.filter((name) => !documented.has(name))).toEqual([]);
    expect([...documented].filter(([name, { optional }]) => !optional && !served.has(name))).toEqual([]);
    const different = ours.flatMap((name) => {
      const { type, labels } = served.get(name)!;
      const said = documented.get(name)!;
      const same = type === said.type && (labels === null || labels.join() === said.labels.join());
      return same ? [] : [{ name, type, labels, said }];
    });
    expect(different).toEqual([]);
  });

  test('dashboard and alerts use documented series only, and every alert has its paragraph', async () => {
    const known = queryableNames();
    for (const name of servedSeries(await scrape()).keys()) if (/^(?:process|nodejs)_/.test(name)) known.add(name);
    const dashboard = JSON.parse(operating('grafana-dashboard.json')) as {
      panels: { title: string; targets?: { expr: string }[] }[];
    };
    const rules = operating('alerts.yml');
    const alerts = [...rules.matchAll(/^\s*- alert: (\w+)$/gm)].map((match) => match[1]!);
    const queries = [
      ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
      ...[...rules.matchAll(/- alert: (\w+)\n\s*expr: (.+)$/gm)].map((match) => [match[1]!, match[2]!] as const),
    ];
    expect(queries.length).toBeGreaterThan(30);
    expect(rules.match(/^\s*expr:/gm)).toHaveLength(alerts.length);
    const unknown = queries.flatMap(([where, query]) =>
      [...query.matchAll(/\b(?:lumio|http|process|nodejs)_\w+/g)]
        .map((match) => match[0])
        .filter((name) => !known.has(name))
        .map((name) => `${where}: ${name}`),
    );
    expect(unknown).toEqual([]);
    const guide = operating('README.md');
    expect(alerts.filter((name) => !guide.includes(`### ${name}`))).toEqual([]);
    const explained = [...guide.matchAll(/^### (Lumio\w+)/gm)].map((match) => match[1]!);
    expect(explained.filter((name) => !alerts.includes(name))).toEqual([]);
    // Every alert fires in a case, which scripts/ci/alerts.mjs runs.
    const cases = operating('alerts.test.yml').split(/^ {2}- name: /m);
    const fires = (name: string) => new RegExp(`alertname: ${name}\\n\\s*exp_alerts:\\n\\s*- `);
    expect(alerts.filter((name) => !cases.some((one) => fires(name).test(one)))).toEqual([]);
  });
});

test('servers beside each other need no port of their own for metrics', async () => {
  const first = await listenMetrics({ host: '127.0.0.1', render: async () => 'one' });
  const second = await listenMetrics({ host: '127.0.0.1', render: async () => 'two' });
  expect(await (await fetch(second.url)).text()).toBe('two');
  expect(first.url).not.toBe(second.url);
  await Promise.all([first.close(), second.close()]);
});
