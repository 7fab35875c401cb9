import { batchOrigin } from '../../engines/tracing/port';
import { type CollectedSpan, type Collector, startCollector } from '../support/otlp-collector';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { VendorCloud } from '../support/vendor-cloud';

const traceOf = (trace_id: string) => `00-${trace_id}-b7ad6b7169203331-01`;

describe('traces', () => {
  let collector: Collector;
  let server: TestServer;
  let vendors: VendorCloud;
  let socket: Client;

  beforeAll(async () => {
    collector = await startCollector();
    server = await startServer({ env: { LUMIO_TRACING__OTLP_URL: collector.url, LUMIO_LOG_LEVEL: 'debug' } });
    vendors = new VendorCloud(server.base_url, server.credentials);
    socket = await Client.open(server.ws_url, server.credentials.access_token);
    await socket.subscribe(`events:${server.credentials.account_id}`);
  });
  afterAll(async () => {
    socket?.end();
    await server?.dispose();
    await collector?.close();
  });

  /** Waits until one trace holds all these names, and returns those spans in that order. */
  const traceWith = (names: string[], trace_id?: string): Promise<CollectedSpan[]> =>
    collector.until(`trace with ${names.join(', ')}`, (spans) => {
      for (const first of spans.filter((span) => span.name === names[0])) {
        if (trace_id !== undefined && first.trace_id !== trace_id) continue;
        const found = names.map((name) => spans.find((span) => span.trace_id === first.trace_id && span.name === name));
        if (found.every((span) => span !== undefined)) return found;
      }
      return undefined;
    });

  test('one webhook is one trace, from its request to the socket', async () => {
    expect((await vendors.kickFollow(424242)).status).toBe(200);
    const names = ['HTTP POST /v1/webhooks/kick', 'publish platform-events', 'project event-log', 'push events'];
    const spans = await traceWith(names);
    const [http, publish, project, push] = spans;
    expect(http).toMatchObject({ parent_id: null, kind: 2, service: 'lumio', failed: false });
    expect(http!.attributes).toMatchObject({ 'http.route': '/v1/webhooks/kick', 'http.response.status_code': 200 });
    expect(publish).toMatchObject({ parent_id: http!.span_id, kind: 4 });
    expect(project).toMatchObject({ parent_id: publish!.span_id, kind: 5 });
    expect(push).toMatchObject({ parent_id: project!.span_id, attributes: { 'lumio.subscribers': 1 } });
  });

  test('a command continues its caller’s trace, and its log lines name it', async () => {
    const trace_id = '0af7651916cd43dd8448eb211c80319c';
    const answer = await fetch(`${server.base_url}/v1/api-keys`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.credentials.access_token}`,
        'content-type': 'application/json',
        traceparent: traceOf(trace_id),
        'x-correlation-id': 'traced-command',
      },
      body: JSON.stringify({ label: 'Traced', permissions: ['events:read'] }),
    });
    expect(answer.status).toBe(201);
    const spans = await traceWith(['HTTP POST /v1/api-keys', 'append api-key', 'project api-keys'], trace_id);
    expect(spans[0]!.parent_id).toBe('b7ad6b7169203331');
    expect(spans[1]!.parent_id).toBe(spans[0]!.span_id);
    expect(spans[2]!.parent_id).toBe(spans[1]!.span_id);
    const line = server
      .output()
      .split('\n')
      .find((text) => text.includes('"correlation_id":"traced-command"'));
    expect(line).toContain(`"trace_id":"${trace_id}"`);
  });

  test('a caller that does not want its trace kept is obeyed, and one that sends nonsense gets a trace of its own', async () => {
    const get = (traceparent: string) =>
      fetch(`${server.base_url}/v1/events?limit=1`, {
        headers: { authorization: `Bearer ${server.credentials.access_token}`, traceparent },
      });
    const unsampled = '1bf7651916cd43dd8448eb211c80319c';
    expect((await get(`00-${unsampled}-b7ad6b7169203331-00`)).status).toBe(200);
    expect((await get(`00-${'0'.repeat(32)}-b7ad6b7169203331-01`)).status).toBe(200);
    const own = await collector.until('a trace for nonsense', (spans) =>
      spans.find((span) => span.name === 'HTTP GET /v1/events'),
    );
    expect(own.trace_id).not.toMatch(/^0+$/);
    expect(collector.spans.filter((span) => span.trace_id === unsampled)).toEqual([]);
  });

  test('spans tell nothing of tokens and payloads', async () => {
    const told = JSON.stringify(collector.spans);
    expect(told).not.toContain('424242');
    expect(told).not.toContain(server.credentials.access_token);
  });

  test('a collector that goes away costs nothing but its spans', async () => {
    await collector.close();
    expect((await vendors.kickFollow(424243)).status).toBe(200);
    await socket.next((message) => JSON.stringify(message).includes('424243'), 'the follower');
    expect(await server.stop()).toBe(0);
  });
});

describe('what a span over many records belongs to', () => {
  const [a, b] = ['a', 'b'].map((digit) => traceOf(digit.repeat(32)));

  test('records of one trace: that trace', () => expect(batchOrigin([null, a, undefined, a])).toEqual({ parent: a }));
  test('records of several: links to each', () =>
    expect(batchOrigin([a, b, a])).toEqual({ parent: null, links: [a, b] }));
  test('no trace at all: a new one', () => expect(batchOrigin([null])).toEqual({ parent: null }));
  test('at most 32 links', () => {
    const many = Array.from({ length: 100 }, (_, n) => traceOf(String(n + 1).padStart(32, '0')));
    expect(batchOrigin(many).links).toHaveLength(32);
  });
});
