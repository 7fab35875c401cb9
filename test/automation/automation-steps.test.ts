import { Automations, chain } from '../support/automations';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, VendorCloud } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let automations: Automations;
beforeAll(async () => {
  server = await startServer();
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  automations = new Automations(owner);
});
afterAll(() => server?.dispose());
afterEach(() => automations.drop());

const variables = async () =>
  Object.fromEntries(
    ((await owner.get('/v1/automations/variables')).body.data as any[]).map(({ name, value }) => [name, value]),
  );
const set = (name: string, value: unknown) => ['action:set_variable', { name, value }] as const;
const add = (name: string, amount: unknown) => ['action:add_to_variable', { name, amount }] as const;

test('steps set variables and add to them, and fail on other types', async () => {
  const { steps } = await automations.walk(
    set('greeting', 'On {{platform}}{{'),
    set('is_on', true),
    add('count', 2),
    add('count', '{{var.count}}'),
    set('copy', '{{var.count}}'),
  );
  expect(steps.map(({ status, output }) => [status, output])).toEqual(Array(5).fill(['succeeded', 'done']));
  expect(steps[3].input).toEqual({ name: 'count', amount: '2' });
  expect(await variables()).toEqual({ greeting: 'On {{', is_on: true, count: 4, copy: 4 });
  expect((await automations.walk(add('greeting', 1))).run).toMatchObject({ status: 'failed', error: 'not_a_number' });
  expect((await automations.walk(add('count', 'x'))).run).toMatchObject({ status: 'failed', error: 'not_a_number' });
  const { steps: handled } = await automations.walk(add('greeting', 1), ['action:wait', { seconds: 1 }, 'failed']);
  expect(handled.map(({ status, error }) => [status, error])).toEqual([
    ['failed', 'not_a_number'],
    ['succeeded', null],
  ]);
});

test('a text about the person of the cause is sealed in its row', async () => {
  const FOLLOW = ['trigger:event', { event_types: ['kick:follower'] }] as const;
  const id = await automations.make(
    chain(FOLLOW, set('last', '{{displayName}}'), set('kept', 'a text'), set('number', '7')),
  );
  await new VendorCloud(server.base_url, server.credentials).kickFollow(73);
  await automations.ended(id);
  expect(await variables()).toMatchObject({ last: 'viewer_73', kept: 'a text', number: 7 });
  const rows = await server.database!.db.query(
    `select name, value, key_id is null as is_clear from automation_variables where name in ('last', 'kept') order by 1`,
  );
  expect(rows).toEqual([
    { name: 'kept', value: '"a text"', is_clear: true },
    { name: 'last', value: null, is_clear: false },
  ]);
});

test.each([
  ['name', set('a-b', 'x')],
  ['value', set('a', null)],
  ['value', set('a', 'ü'.repeat(8_193))],
  ['amount', add('a', true)],
  ['amount', add('a', '')],
])('a graph with a wrong %s is refused', async (member, node) => {
  const { id } = (await owner.send('POST', '/v1/automations', { name: 'One' })).body.data;
  const graph = chain(['trigger:manual'], node);
  const put = await owner.send('PUT', `/v1/automations/${id}/graph`, { revision: 0, ...graph });
  expect(put).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  expect(put.body.message).toContain(`node ${graph.nodes[1]!.id}: config.${member}`);
  await owner.send('DELETE', `/v1/automations/${id}`, undefined);
});
