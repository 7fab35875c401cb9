import { z } from 'zod';
import { adminPermission, get, query, whole } from '../../app/operation';
import { SystemConnection, systemConnectionsOf } from '../../views/operators/system-connections';
import { APP_PLATFORMS } from '../../domain/operators/system-connections';

/** Source: spec extra-facts §27. */
export const systemConnections = query({
  name: 'systemConnections',
  summary: "The installation's own apps and bots at platforms",
  rest: get('/v1/admin/system-connections'),
  pages: whole(),
  guard: [adminPermission('system-connections:read')],
  input: z.object({}),
  output: SystemConnection,
  run: (_request, services) => systemConnectionsOf(services),
});

export const systemConnection = query({
  name: 'systemConnection',
  summary: "The installation's own app and bot at one platform",
  rest: get('/v1/admin/system-connections/{platform}'),
  guard: [adminPermission('system-connections:read')],
  input: z.object({ platform: z.enum(APP_PLATFORMS) }),
  output: SystemConnection,
  async run({ input: { platform } }, services) {
    const [found] = await systemConnectionsOf(services, platform);
    return found!;
  },
});
