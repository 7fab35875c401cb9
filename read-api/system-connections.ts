import { z } from 'zod';
import { adminPermission, get, query, whole } from '../access/operation';
import { SystemConnection, systemConnectionsOf } from '../access/system-connections';

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
