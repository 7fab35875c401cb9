import { randomUUID } from 'node:crypto';
import { automationCount } from '../../domain/automation/automation-counts';
import { decider } from '../support/decider';
import { ownerAndStranger, sharedServer } from '../support/shared-server';
import type { ApiClient } from '../support/vendor-cloud';

const PATH = '/v1/automations';
let account: { account_id: string };
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  ({ account, owner, stranger } = await ownerAndStranger(await sharedServer()));
});

const make = async (body: object = {}) => (await owner.send('POST', PATH, { name: 'Thanks', ...body })).body.data;
const put = (id: string, body: object, api = owner) => api.send('PUT', `${PATH}/${id}/graph`, body);
const patch = (id: string, body: object, api = owner) => api.send('PATCH', `${PATH}/${id}`, body);

/** A graph of a trigger and a node after it. */
function graph(type: string, config: object) {
  const [trigger, node] = [randomUUID(), randomUUID()];
  return {
    nodes: [
      { id: trigger, type: 'trigger:manual', config: {} },
      { id: node, type, config, x: 1.5 },
    ],
    edges: [{ from: trigger, to: node }],
    node,
  };
}
const bodyOf = ({ nodes, edges }: ReturnType<typeof graph>, revision = 0) => ({ revision, nodes, edges });

test('automations are made, listed, changed and deleted on both protocols, by their account alone', async () => {
  for (const body of [{ name: ' ' }, { name: 'x'.repeat(101) }, { second_run: 'other' }, { nodes: [] }])
    expect(await owner.send('POST', PATH, { name: 'x', ...body })).toMatchObject({
      ...{ status: 400, body: { error: 'VALIDATION_ERROR' } },
    });
  const once = () => owner.send('POST', PATH, { name: ' Thanks ', description: '' }, { 'idempotency-key': 'made' });
  const [made, repeated] = [await once(), await once()];
  expect(made).toMatchObject({
    status: 201,
    body: {
      data: {
        ...{ name: 'Thanks', description: null, enabled: false, second_run: 'parallel', revision: 0 },
        ...{ disabled_reason: null, nodes: [], edges: [] },
      },
    },
  });
  expect(repeated.body).toEqual(made.body);
  const { id } = made.body.data;
  const listed = (await owner.get(PATH)).body;
  expect(listed).toMatchObject({ data: [{ id, revision: 0 }], _meta: { total: 1 } });
  expect(listed.data[0]).not.toHaveProperty('nodes');
  const both = await owner.gql(
    `{ automations { total items { id secondRun } } automation(id: "${id}") { nodes { id } } }`,
  );
  expect(both.data).toEqual({
    automations: { total: 1, items: [{ id, secondRun: 'parallel' }] },
    automation: { nodes: [] },
  });
  expect((await patch(id, { enabled: true, second_run: 'queue' })).body.data).toMatchObject({
    ...{ name: 'Thanks', enabled: true, second_run: 'queue' },
  });
  expect((await stranger.get(PATH)).body._meta.total).toBe(0);
  expect((await stranger.get(`${PATH}/${id}`)).status).toBe(404);
  expect((await patch(id, { name: 'x' }, stranger)).status).toBe(404);
  expect((await put(id, { revision: 0, nodes: [], edges: [] }, stranger)).status).toBe(404);
  expect((await stranger.send('DELETE', `${PATH}/${id}`, undefined)).status).toBe(404);
  expect((await owner.gql(`mutation { deleteAutomation(id: "${id}") { success } }`)).data.deleteAutomation).toEqual({
    success: true,
  });
  expect((await owner.send('DELETE', `${PATH}/${id}`, undefined)).status).toBe(404);
});

test('a graph is replaced at its revision, once by six writers, and shown as it was sent', async () => {
  const { id } = await make();
  const raw = { text: '{{displayName}}', big: { a: [1, { toString: null }] }, b: '{}' };
  const one = graph('action:emit_event', { event_type: 'my:event', raw });
  const answers = await Promise.all(Array.from({ length: 6 }, () => put(id, bodyOf(one))));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  expect(answers.find(({ status }) => status === 409)!.body.error).toBe('CONFLICT');
  const stored = (await owner.get(`${PATH}/${id}`)).body.data;
  expect(stored).toMatchObject({ revision: 1, edges: [{ ...one.edges[0], output: 'next' }] });
  expect(stored.nodes).toEqual(one.nodes);
  const replaced = await owner.gql(
    `mutation { replaceAutomationGraph(id: "${id}", input: { revision: 1, nodes: [], edges: [] }) { revision nodes { id } } }`,
  );
  expect(replaced.data.replaceAutomationGraph).toEqual({ revision: 2, nodes: [] });
});

test('a problem of a graph names its node, and changes nothing', async () => {
  const { id } = await make();
  const other = (await stranger.send('POST', PATH, { name: 'Other' })).body.data.id as string;
  for (const broken of [
    graph('action:none', {}),
    graph('action:wait', { seconds: 0 }),
    graph('action:wait', { seconds: 1, more: true }),
    graph('action:run_automation', { automation_id: other }),
    graph('action:play_sound', { sound_id: randomUUID() }),
    graph('action:send_discord_message', { channel_id: '11', message: 'x' }),
    graph('action:set_layer', { overlay_id: randomUUID(), layer_id: randomUUID(), visible: true }),
    { ...graph('action:wait', { seconds: 1 }), edges: [] },
  ]) {
    const refused = await put(id, bodyOf(broken));
    expect(refused).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
    expect(refused.body.message).toContain(broken.node);
  }
  expect((await put(id, JSON.parse(HIDDEN_MEMBER) as object)).status).toBe(400);
  expect((await owner.get(`${PATH}/${id}`)).body.data).toMatchObject({ revision: 0, nodes: [] });
  expect((await put(id, bodyOf(graph('action:run_automation', { automation_id: id })))).status).toBe(200);
});

const HIDDEN_MEMBER = JSON.stringify(bodyOf(graph('action:wait', { seconds: 1 }))).replace('{}', '{"__proto__":{}}');

test('an export imports into another account, disabled, without ids and addresses', async () => {
  const { id } = await make({ name: 'Out', description: 'Shared', second_run: 'skip' });
  const [trigger, wait, call, start] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const nodes = [
    { id: trigger, type: 'trigger:manual', config: {} },
    { id: wait, type: 'action:wait', config: { seconds: 3 }, x: 1, y: 2 },
    {
      id: call,
      type: 'action:send_webhook',
      config: { url: 'https://example.com/secret', body: '{"a":"{{platform}}"}' },
    },
    { id: start, type: 'action:run_automation', config: { automation_id: id } },
  ];
  const edges = [
    { from: trigger, to: wait },
    { from: wait, to: call, output: 'done' },
    { from: call, to: start, output: 'failed' },
  ];
  expect((await put(id, { revision: 0, nodes, edges })).status).toBe(200);
  const exported = await owner.get(`${PATH}/${id}/export`);
  expect(exported.body).toEqual({
    ...{ format: 'lumio:automation', version: 1, name: 'Out', description: 'Shared', second_run: 'skip' },
    nodes: [
      { id: '1', type: 'trigger:manual', config: {} },
      { id: '2', type: 'action:wait', config: { seconds: 3 }, x: 1, y: 2 },
      { id: '3', type: 'action:send_webhook', config: { body: '{"a":"{{platform}}"}' } },
      { id: '4', type: 'action:run_automation', config: {} },
    ],
    edges: [
      { from: '1', to: '2', output: 'next' },
      { from: '2', to: '3', output: 'done' },
      { from: '3', to: '4', output: 'failed' },
    ],
  });
  const take = () => stranger.send('POST', `${PATH}/import`, exported.body, { 'idempotency-key': 'import' });
  const [taken, again] = [await take(), await take()];
  expect(taken).toMatchObject({
    status: 201,
    body: {
      data: { name: 'Out', enabled: false, second_run: 'skip', revision: 0, edges: [{ output: 'next' }, {}, {}] },
    },
  });
  expect(again.body).toEqual(taken.body);
  const copy = taken.body.data;
  expect((await stranger.get(`${PATH}/${copy.id}/export`)).body).toEqual(exported.body);
  const refused = await patch(copy.id, { enabled: true }, stranger);
  expect(refused).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  for (const at of [2, 3]) expect(refused.body.message).toContain(copy.nodes[at].id);
  expect((await stranger.get(`${PATH}/${copy.id}`)).body.data.enabled).toBe(false);
  const both = await owner.gql(`{ automationExport(id: "${id}") { format version edges { from to } } }`);
  expect(both.data.automationExport).toMatchObject({
    format: 'lumio:automation',
    version: 1,
    edges: [{ from: '1' }, {}, {}],
  });
  expect((await stranger.get(`${PATH}/${id}/export`)).status).toBe(404);
});

test('a document with a problem is refused by the id of its node, and makes nothing', async () => {
  const of = { format: 'lumio:automation', version: 1, name: 'In', description: null };
  const nodes = [{ id: 'begin', type: 'trigger:manual', config: {} }];
  const next = (type: string, config: object, id = 'next') => [...nodes, { id, type, config }];
  const edges = [{ from: 'begin', to: 'next' }];
  const own = (await make({ name: 'Own' })).id as string;
  for (const [body, named] of [
    [{ ...of, nodes, edges }, 'next'],
    [{ ...of, nodes: next('action:wait', {}), edges }, 'next'],
    [{ ...of, nodes: next('action:wait', { seconds: 1 }, 'begin'), edges: [] }, 'begin'],
    [{ ...of, nodes: next('action:wait', { seconds: 1 }), edges: [] }, 'next'],
    [{ ...of, nodes: next('action:run_automation', { automation_id: own }), edges }, 'next'],
    [{ ...of, nodes: next('action:send_webhook', { url: 'http://10.0.0.1/' }), edges }, 'next'],
    [{ ...of, nodes: next('action:wait', { seconds: 1 }), edges: Array(1_200).fill(edges[0]) }, '64 KiB'],
    [{ ...of, version: 2, nodes, edges: [] }, 'version'],
    [{ ...of, format: 'other', nodes, edges: [] }, 'format'],
    [{ ...of, enabled: true, nodes, edges: [] }, 'enabled'],
  ] as const) {
    const refused = await stranger.send('POST', `${PATH}/import`, body);
    expect(refused).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
    expect(JSON.stringify(refused.body)).toContain(named);
  }
  expect((await stranger.get(PATH)).body.data.map(({ name }: { name: string }) => name)).not.toContain('In');
  const { data } = await stranger.gql(
    `mutation { importAutomation(input: { format: "lumio:automation", version: 1, name: "In", edges: [],
      nodes: [{ id: "one", type: "trigger:manual", config: {} }] }) { enabled nodes { type x } } }`,
  );
  expect(data.importAutomation).toEqual({ enabled: false, nodes: [{ type: 'trigger:manual', x: null }] });
});

test('changes and starts by hand are audited, dry runs and exports are not', async () => {
  const { id } = await make({ name: 'Audited' });
  const nodes = [{ id: randomUUID(), type: 'trigger:manual', config: {} }];
  await put(id, { revision: 0, nodes, edges: [] });
  await patch(id, { enabled: true });
  await owner.send('POST', `${PATH}/${id}/rotate-webhook-secret`, {});
  await owner.send('POST', `${PATH}/${id}/dry-run`, {});
  await owner.get(`${PATH}/${id}/export`);
  await owner.send('POST', `${PATH}/${id}/run`, {});
  await owner.send('DELETE', `${PATH}/${id}`, undefined);
  const entries = (await owner.get(`/v1/account/audit-log?target_id=${id}`)).body.data as { action: string }[];
  expect(entries.map(({ action }) => action).sort()).toEqual([
    ...['automation:created', 'automation:deleted', 'automation:graph_replaced', 'automation:updated'],
    ...['automation_run:requested', 'automation_webhook:secret_rotated'],
  ]);
});

test('no operation answers without a credential, or to a member whose role has none of its permissions', async () => {
  const server = await sharedServer();
  const { id } = await make({ name: 'Closed' });
  const viewer = server.client((await server.member(account.account_id, 'viewer')).access_token);
  const document = { format: 'lumio:automation', version: 1, name: 'x', nodes: [], edges: [] };
  const operations: [string, string, object?][] = [
    ['GET', ''],
    ['POST', '', { name: 'x' }],
    ['GET', `/${id}`],
    ['PATCH', `/${id}`, { name: 'x' }],
    ['DELETE', `/${id}`],
    ['PUT', `/${id}/graph`, { revision: 0, nodes: [], edges: [] }],
    ['GET', '/node-types'],
    ['POST', `/${id}/run`, {}],
    ['POST', `/${id}/dry-run`, {}],
    ['GET', `/${id}/runs`],
    ['GET', `/runs/${randomUUID()}`],
    ['GET', '/variables'],
    ['PUT', '/variables/x', { type: 'number', value: 1 }],
    ['DELETE', '/variables/x'],
    ['POST', '/templates/variables', { template: '' }],
    ['POST', '/templates/permissions', { template: '' }],
    ['GET', `/${id}/export`],
    ['POST', '/import', document],
    ['POST', `/${id}/rotate-webhook-secret`, {}],
  ];
  const statuses = (api: ApiClient) =>
    Promise.all(
      operations.map(async ([method, path, body]) => {
        const { status } = await (method === 'GET' ? api.get(PATH + path) : api.send(method, PATH + path, body));
        return `${method} ${path} ${status}`;
      }),
    );
  const all = (status: number) => operations.map(([method, path]) => `${method} ${path} ${status}`);
  expect(await statuses(server.client(''))).toEqual(all(401));
  expect(await statuses(viewer)).toEqual(all(403));
  expect((await owner.get(`${PATH}/${id}`)).body.data).toMatchObject({ name: 'Closed', revision: 0 });
});

test('node types are listed with their schemas', async () => {
  const { body } = await owner.get(`${PATH}/node-types`);
  expect(body.data).toContainEqual(
    expect.objectContaining({
      ...{ type: 'action:wait', family: 'action', outputs: ['done', 'failed'] },
      config: expect.objectContaining({ type: 'object', required: ['seconds'], additionalProperties: false }),
    }),
  );
  const { data } = await stranger.gql('{ automationNodeTypes { type outputs } }');
  expect(data.automationNodeTypes).toContainEqual({ type: 'condition:chance', outputs: ['true', 'false'] });
});

test('an account has at most 1,000 automations', () => {
  const given = decider(automationCount);
  const of = (n: number) => ({ automation_id: `a${n}`, account_id: 'a' });
  const all = Array.from({ length: 1_000 }, (_, n) => ({ type: 'automation_count:added' as const, ...of(n) }));
  const add = { type: 'automation_count:add', ...of(1_000) } as const;
  given(all).when(add).thenFails('TOO_MANY_AUTOMATIONS');
  given([...all, { type: 'automation_count:removed', ...of(0) }])
    .when(add)
    .then({ ...add, type: 'automation_count:added' });
});
