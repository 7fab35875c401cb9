import { APP, FakeOAuthCloud } from '../../vendors/oauth-cloud';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient } from '../../support/vendor-cloud';

const WEB = 'https://app.example';
const BACK = `${WEB}/connections?tab=channels`;

let cloud: FakeOAuthCloud;
let server: TestServer;
let stranger: ApiClient;
beforeAll(async () => {
  cloud = await new FakeOAuthCloud().start();
  server = await startServer({
    env: {
      ...cloud.env(),
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
      LUMIO_LOG_LEVEL: 'trace',
    },
  });
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const SECRET = /app-secret|oauth-[0-9a-f]{8}|own-secret|tip-token/;
/** Log lines so far, read after each test, because only the last part of the output is kept. */
const logged = { lines: 0, secrets: [] as string[] };
afterEach(() => {
  const lines = server.output().split('\n');
  logged.lines = Math.max(logged.lines, lines.length);
  logged.secrets.push(...lines.filter((line) => SECRET.test(line)));
});

const start = (api: ApiClient, platform: string, kind = 'channel', return_to = BACK) =>
  api.send('POST', `/v1/connections/oauth/${platform}/start`, { kind, return_to });
const exchange = (api: ApiClient, platform: string, body: object, key?: string) =>
  api.send('POST', `/v1/connections/oauth/${platform}/exchange`, body, key ? { 'idempotency-key': key } : {});

/** The whole way: begin, log in at the vendor, come back. */
async function connect(api: ApiClient, platform: string, vendor_id: string, kind = 'channel') {
  const begun = await start(api, platform, kind);
  if (begun.status !== 200) return begun;
  const { code, state } = cloud.login(begun.body.authorize_url, vendor_id);
  return exchange(api, platform, { code, state });
}

test('a vendor that is away is 503, and a wrong secret says so', async () => {
  const begun = cloud.login((await start(stranger, 'spotify')).body.authorize_url, 'eve');
  cloud.fail({ path: '/api/token', status: 503, times: 10, retry_after: 7 });
  const { code, state } = begun;
  expect(await exchange(stranger, 'spotify', { code, state })).toMatchObject({ status: 503 });
  cloud.heal();
  cloud.apps.set(APP.client_id, 'changed');
  expect(await connect(stranger, 'spotify', 'eve')).toMatchObject({
    status: 400,
    body: { message: 'spotify does not take the app credentials' },
  });
  cloud.apps.set(APP.client_id, APP.client_secret);
});
