import Fastify from 'fastify';
import type { IncomingHttpHeaders } from 'node:http';
import { createHttpHooks, type HttpHookOptions } from '../../api/http/http-hooks';
import { SettingsSchema } from '../../kernel/settings/settings';
import { silentLog } from '../support/log';

test('the cookie of a page from elsewhere does not count in the place of a client’s HTTP Basic', async () => {
  let headers: IncomingHttpHeaders = {};
  const app = Fastify();
  const series = { inc: () => undefined, observe: () => undefined };
  const options = {
    settings: SettingsSchema.parse({}),
    log: silentLog,
    metrics: { counter: () => series, histogram: () => series },
    tracing: { on: false },
    limiter: { unitsOf: () => ({}), countCaller: () => null },
    resolveCaller: (request: { headers: IncomingHttpHeaders }) => {
      ({ headers } = request);
      return { caller: { kind: 'anonymous' }, failure: null };
    },
  };
  await createHttpHooks(options as unknown as HttpHookOptions).install(app);
  app.post('/token', { config: { client_basic: true } }, () => 'ok');
  await app.inject({
    method: 'POST',
    url: '/token',
    headers: { authorization: 'Basic YTpi', cookie: 'lumio-popout-token=x', origin: 'https://evil.example' },
  });
  await app.close();
  expect(headers).toMatchObject({ authorization: undefined, cookie: undefined, origin: 'https://evil.example' });
});
