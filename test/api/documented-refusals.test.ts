import type { Services } from '../../app/services';
import type { Operation } from '../../app/operation';
import { createApi, type Api } from '../../api/server';
import { OPERATIONS } from '../../bin/areas';
import { anonymous } from '../../access/authentication/resolve';
import type { RateLimits } from '../../engines/rate-limits/port';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { SettingsSchema } from '../../kernel/settings/settings';
import { doorAt, type Door } from '../support/door';
import { silentLog } from '../support/log';

type Json = Record<string, any>;

/** Refuses every unit; what has no limit never asks. */
const exhausted: RateLimits = {
  take: async (_bucket, _cost, limit) => ({ allowed: false, limit, remaining: 0, reset_seconds: 7 }),
  giveBack: async () => undefined,
  pace: async () => 0,
  close: async () => undefined,
};

/** All operations, before any of them runs: an anonymous caller without a limit, and `limited` with none left. */
let api: Api;
let door: Door;
let document: Json;
beforeAll(async () => {
  api = await createApi({
    settings: SettingsSchema.parse({ port: 0, docs: { openapi_json: true } }),
    operations: OPERATIONS as readonly Operation[],
    services: {} as Services,
    // Refused deliveries are counted as anonymous, whatever they bring.
    resolveCaller: ({ headers, url, ip }) => {
      const limited = headers.authorization === 'Bearer limited' || url.startsWith('/v1/webhooks/');
      return { failure: null, caller: { ...anonymous(ip), rate_limit: limited ? 1 : null } };
    },
    holder: { lock: 1, held: false },
    rate_limits: exhausted,
    webhooks: [
      {
        method: 'POST',
        path: '/v1/webhooks/sample',
        described: true,
        handle: async () => ({ status: 401, body: '{"error":"UNAUTHORIZED"}' }),
      },
    ],
    health: { checks: [], websocket: () => ({ sessions: 0, channels: 0 }) },
    metrics: createPrometheusMetrics({ service: 'lumio', env: 'test' }),
    log: silentLog,
    version: '0',
  });
  door = doorAt(await api.listen(), '');
  document = (await door.rest('GET', '/v1/openapi.json')).json as Json;
});
afterAll(() => api?.close());

/** Every operation of the document, with a path that has a value for each parameter. */
function described(): { name: string; method: string; path: string; responses: Json; open: boolean }[] {
  const ID = '0197f3a0-0000-7000-8000-000000000001';
  return Object.entries(document.paths as Json).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, { operationId, responses, security }]) => ({
      name: operationId as string,
      method: method.toUpperCase(),
      path: path.replaceAll(/\{\w+\}/g, ID),
      responses: responses as Json,
      open: (security as Json[]).some((one) => Object.keys(one).length === 0),
    })),
  );
}

test('429 is answered where it is documented and nowhere else, with its header', async () => {
  const EXEMPT = ['live', 'health'];
  const refused: string[] = [];
  for (const { name, method, path, responses } of described()) {
    const upgrade = path === '/v1/ws';
    const { status, headers } = await door.rest(method, path, { as: 'limited' });
    const is_refused = status === 429;
    expect([name, headers.get('retry-after')]).toEqual([name, is_refused ? '7' : null]);
    // The upgrade has a bucket of its own, which its tests exhaust.
    if (is_refused || upgrade) refused.push(name);
    expect([name, responses[429]?.headers?.['Retry-After'] !== undefined]).toEqual([name, !EXEMPT.includes(name)]);
  }
  const names = described().map(({ name }) => name);
  expect(names.length).toBeGreaterThan(150);
  expect(refused.sort()).toEqual(names.filter((name) => !EXEMPT.includes(name)).sort());
});

test('a head that is too long is 431 everywhere, as documented', async () => {
  for (const { name, method, path, responses } of described()) {
    const { status, json } = await door.rest(method, `${path}?q=${'x'.repeat(20_000)}`);
    expect([name, status, json.error]).toEqual([name, 431, 'BAD_REQUEST']);
    expect([name, Object.keys(responses)]).toEqual([name, expect.arrayContaining(['431'])]);
  }
});

test('401 is answered where a credential is needed and documented, with its challenge', async () => {
  for (const { name, method, path, responses, open } of described()) {
    // Where 401 is documented its challenge is, whoever answers it.
    const challenge = responses[401]?.headers?.['WWW-Authenticate'];
    expect([name, challenge !== undefined]).toEqual([name, responses[401] !== undefined]);
    if (open) continue;
    const { status, headers } = await door.rest(method, path);
    expect([name, status, headers.get('www-authenticate')]).toEqual([name, 401, 'Bearer']);
    expect([name, challenge !== undefined]).toEqual([name, true]);
  }
});
