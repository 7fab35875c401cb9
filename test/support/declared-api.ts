import type { Server } from 'node:http';
import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { anonymous } from '../../access/authentication/resolve';
import { publicAccess, query, type Operation } from '../../app/operation';
import type { Services } from '../../app/services';
import { type ApiDeps, createApi } from '../../api/server';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { SettingsSchema } from '../../kernel/settings/settings';
import { doorAt, type Door } from './door';
import { silentLog } from './log';

/** A caller of a test; what is not said is that of a logged-in user without any right. */
export const callerOf = (changes: Partial<Caller>): Caller => ({
  kind: 'jwt',
  user_id: 'user-1',
  account_id: null,
  credential_id: 'session-1',
  permissions: new Set(),
  admin_permissions: new Set(),
  user_permissions: new Set(),
  rate_bucket: 'test',
  rate_limit: null,
  expires_at: null,
  ...changes,
});

/** GraphQL knows no schema without a query. */
const PING = query({
  name: 'ping',
  summary: 'Answers',
  rest: null,
  guard: [publicAccess],
  input: z.object({}),
  output: z.string(),
  run: async () => 'pong',
});

export interface DeclaredApi extends Door {
  server: Server;
  close(): Promise<void>;
}

/**
 * Serves operations that a test declares, on a real socket of this process. The bearer token is the name of one of the
 * callers; any other is anonymous.
 */
export async function serveDeclared(
  operations: readonly Operation[],
  services: Partial<Services>,
  callers: Record<string, Caller>,
  settings: object = {},
  bounds: Partial<Pick<ApiDeps, 'reading' | 'webhooks' | 'graphql' | 'rate_limits' | 'log'>> = {},
): Promise<DeclaredApi> {
  const api = await createApi({
    settings: SettingsSchema.parse({ port: 0, docs: { openapi_json: true }, ...settings }),
    operations: [PING, ...operations],
    services: { features: { enabled: async () => true }, ...services } as Services,
    resolveCaller: async ({ headers, ip }) => ({
      failure: null,
      caller: callers[(headers.authorization ?? '').replace(/^Bearer /, '')] ?? anonymous(ip),
    }),
    holder: { lock: 1, held: false },
    rate_limits: createLocalRateLimits(),
    webhooks: [],
    health: { checks: [], websocket: () => ({ sessions: 0, channels: 0 }) },
    metrics: createPrometheusMetrics({ service: 'lumio', env: 'test' }),
    log: silentLog,
    version: '0',
    ...bounds,
  });
  const url = await api.listen();
  return { ...doorAt(url, Object.keys(callers)[0] ?? ''), server: api.app.server, close: () => api.close() };
}
