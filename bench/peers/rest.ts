import type Fastify from 'fastify';
import type pg from 'pg';
import { userApiKeys } from '../../views/credentials/api-keys';
import type { Queryable, Row } from '../../engines/postgres/port';
import { MAX_PAGE_BYTES } from '../../kernel/operations/pages';
import { eventsPage } from '../../read-api/events/events-pages';
import { peer } from '../harness';
import { serve } from './listen';

/**
 * Lumio's two answers by bare Fastify and pg: our SQL, nothing else. No authentication, permissions, limits or
 * validation; the account is fixed. `raw` is passed on as text here too, in the peer's favour: pg's default is to parse
 * and serialise.
 */
async function main(url: string, account_id: string, user_id: string): Promise<void> {
  const fastify = peer<typeof Fastify>('fastify');
  const driver = peer<typeof pg>('pg');
  driver.types.setTypeParser(driver.types.builtins.JSON, (text: string) => text);
  driver.types.setTypeParser(driver.types.builtins.INT8, Number);
  driver.types.setTypeParser(driver.types.builtins.TIMESTAMPTZ, (text: string) =>
    text.replace(' ', 'T').replace('+00', 'Z'),
  );
  const pool = new driver.Pool({ connectionString: url, max: 12, options: '-c timezone=UTC' });
  const db: Queryable = {
    query: async <R extends Row>(text: string, values?: readonly unknown[], name?: string) =>
      (await pool.query<R>({ text, values: values as unknown[], ...(name ? { name } : {}) })).rows,
  };
  const filter = { account_id, types: null, platforms: null, user_id: null, from: null, to: null, offset: 0 };
  const app = fastify({ logger: false });
  app.get('/v1/events', async (request, reply) => {
    const limit = Number((request.query as Record<string, string>).limit ?? 25);
    const { rows, total } = await eventsPage(db, { ...filter, limit, max_bytes: MAX_PAGE_BYTES });
    const items = rows.map(({ raw, ...row }) => `${JSON.stringify(row).slice(0, -1)},"raw":${raw}}`);
    reply.header('content-type', 'application/json; charset=utf-8');
    return `{"data":[${items.join(',')}],"_meta":{"total":${total},"page":1,"limit":${limit}}}`;
  });
  app.get('/v1/api-keys', async () => {
    const data = await userApiKeys(db, { account_id, user_id });
    return { data, _meta: { total: data.length, page: 1, limit: data.length, pages: 1 } };
  });
  await serve(app);
}

void main(process.argv[2]!, process.argv[3]!, process.argv[4]!);
