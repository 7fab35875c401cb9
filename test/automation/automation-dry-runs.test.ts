import { randomUUID } from 'node:crypto';
import { exampleText } from '../../domain/events/event-catalogue';
import { ownerAndStranger, sharedServer } from '../support/shared-server';
import { chain, type Link } from '../support/automations';
import { ApiClient, eventually } from '../support/vendor-cloud';

const PATH = '/v1/automations';
let account: { account_id: string };
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  ({ account, owner, stranger } = await ownerAndStranger(await sharedServer()));
});

async function automation(...links: Link[]): Promise<string> {
  const { id } = (await owner.send('POST', PATH, { name: 'Dry' })).body.data;
  const put = await owner.send('PUT', `${PATH}/${id}/graph`, { revision: 0, ...chain(...links) });
  expect(put.status).toBe(200);
  return id as string;
}
const dry = (id: string, body: object = {}, api = owner) => api.send('POST', `${PATH}/${id}/dry-run`, body);
const outcomes = (steps: { type: string; output: string | null }[]) =>
  steps.map(({ type, output }) => `${type} ${output}`);
const FOLLOW = ['trigger:event', { event_types: ['kick:follower'] }] as const;
const MANUAL = ['trigger:manual'] as const;
const say = (message: string) => ['action:send_chat_message', { message }] as const;

test('a dry run of a disabled automation shows its steps with their values, and acts on nothing', async () => {
  const id = await automation(
    MANUAL,
    ['condition:cooldown', { seconds: 600, scope: 'global' }],
    ['condition:compare', { left: '{{var.dry}}', op: 'equals', right: '7' }],
    ['action:wait', { seconds: 604_800 }],
    ['action:set_variable', { name: 'dry', value: '8' }],
    ['action:emit_event', { event_type: 'dry:event', raw: { value: '{{var.dry}}' } }],
    say('Seven is {{var.dry}}{{nothing}}'),
    ['condition:chance', { percent: 0 }],
    [...say('Never'), 'false'],
  );
  await owner.send('PUT', '/v1/automations/variables/dry', { type: 'number', value: 7 });
  const walk = async () => (await dry(id)).body.data;
  const [first, second] = [await walk(), await walk()];
  expect(first).toMatchObject({ status: 'succeeded' });
  expect(outcomes(first.steps)).toEqual([
    ...['trigger:manual next', 'condition:cooldown true', 'condition:compare true', 'action:wait done'],
    ...['action:set_variable done', 'action:emit_event done', 'action:send_chat_message done'],
    ...['condition:chance false', 'action:send_chat_message done'],
  ]);
  expect(first.steps[5].input).toEqual({ event_type: 'dry:event', raw: { value: '7' } });
  expect(first.steps[6].input).toEqual({ message: 'Seven is 7', unknown_names: ['nothing'] });
  expect(outcomes(second.steps)).toEqual(outcomes(first.steps));
  expect((await owner.get('/v1/automations/variables')).body.data).toMatchObject([{ name: 'dry', value: 7 }]);
  expect((await owner.get('/v1/events?types=dry:event')).body.data).toEqual([]);
  expect((await owner.get(`${PATH}/${id}/runs`)).body.data).toEqual([]);
  const { data } = await owner.gql(`mutation { dryRunAutomation(id: "${id}") { status steps { type output } } }`);
  expect(data.dryRunAutomation.steps).toHaveLength(first.steps.length);
});

test('a dry run reads an event of the account, or the example of a type, as far as its caller may', async () => {
  const id = await automation(FOLLOW, say('{{event.type}} {{event.id}}'));
  const emitted = await owner.send('POST', '/v1/events/emit', { event_type: 'kick:follower', raw: { a: 1 } });
  const event_id = emitted.body.event.id as string;
  const message = async (body: object, api = owner) => (await dry(id, body, api)).body.data.steps[1].input.message;
  expect(await message({ event_id })).toBe(`kick:follower ${event_id}`);
  expect(await message({ event_type: 'kick:follower' })).toMatch(/^kick:follower/);
  const key = await owner.send('POST', '/v1/api-keys', { label: 'Hand', permissions: ['automations:execute'] });
  const { base_url } = await sharedServer();
  expect(await message({ event_id }, new ApiClient(base_url, key.body.data.key))).toBe(' ');

  const hook = { url: 'https://example.com/' };
  const named = await automation(FOLLOW, say('{{event.type}}|{{displayName}}'), ['action:send_webhook', hook]);
  const known = { event_type: 'kick:follower', raw: { user_id: '7', user_name: 'Ada' } };
  const person = (await owner.send('POST', '/v1/events/emit', known)).body.event.id as string;
  const permissions = ['automations:execute', 'events:userinfo'];
  const names = await owner.send('POST', '/v1/api-keys', { label: 'Names', permissions });
  const seen = (await dry(named, { event_id: person }, new ApiClient(base_url, names.body.data.key))).body.data;
  expect(seen.steps.map(({ input }: { input: object | null }) => input)).toMatchObject([
    null,
    { message: '|Ada' },
    { body: '{}' },
  ]);

  const foreign = await stranger.send('POST', '/v1/events/emit', { event_type: 'kick:follower' });
  for (const [body, status] of [
    [{ event_id: foreign.body.event.id }, 404],
    [{ event_id: randomUUID() }, 404],
    [{ event_type: 'no:example' }, 400],
    [{ event_id, event_type: 'kick:follower' }, 400],
    [{ event_type: 'kick:gift' }, 409],
    [{}, 409],
  ] as const)
    expect((await dry(id, body)).status).toBe(status);
  expect((await dry(id, { event_id }, stranger)).status).toBe(404);
  expect((await dry(randomUUID())).status).toBe(404);
});

test('a run by hand reads no group beyond its caller', async () => {
  const graph = chain(MANUAL, ['action:set_variable', { name: 'song', value: '{{songName}}' }]);
  const { id } = (await owner.send('POST', PATH, { name: 'Hand', enabled: true })).body.data;
  await owner.send('PUT', `${PATH}/${id}/graph`, { revision: 0, ...graph });
  const raw = JSON.parse(exampleText('spotify:track', Date.now())!) as object;
  expect((await owner.send('POST', '/v1/events/emit', { event_type: 'spotify:track', raw })).status).toBe(200);
  const server = await sharedServer();
  const moderator = server.client((await server.member(account.account_id, 'moderator')).access_token);
  const key = await owner.send('POST', '/v1/api-keys', { label: 'Run', permissions: ['automations:execute'] });
  const narrow = new ApiClient(server.base_url, key.body.data.key);
  const songOf = async (api: ApiClient) => {
    const run_id = (await api.send('POST', `${PATH}/${id}/run`, {})).body.data.id as string;
    const steps = await eventually(async () => {
      const { status, steps: found } = (await owner.get(`${PATH}/runs/${run_id}`)).body.data;
      return status === 'succeeded' ? found : undefined;
    }, 'the end of the run');
    return steps[1].input.value as string;
  };
  expect(await songOf(narrow)).toBe('');
  expect(await songOf(moderator)).toBe('Dancing Queen');
  expect((await moderator.send('PATCH', `${PATH}/${id}`, { enabled: false })).status).toBe(403);
  expect((await narrow.get(`${PATH}/${id}/runs`)).status).toBe(403);
});

test('a dry run ends when its steps have shown 4 MiB of values', async () => {
  const message = '{{event.raw.text}}'.repeat(100);
  const emit = ['action:emit_event', { event_type: 'my:round', raw: { message } }] as const;
  const graph = chain(['trigger:event', { event_types: ['my:dry'] }], ['action:wait', { seconds: 60 }], emit);
  const [, wait, event] = graph.nodes;
  const { id } = (await owner.send('POST', PATH, { name: 'Round' })).body.data;
  const edges = [...graph.edges, { from: event!.id, to: wait!.id }];
  await owner.send('PUT', `${PATH}/${id}/graph`, { revision: 0, nodes: graph.nodes, edges });
  const sent = { event_type: 'my:dry', raw: { text: 'x'.repeat(2_000) } };
  const event_id = (await owner.send('POST', '/v1/events/emit', sent)).body.event.id;
  const { data } = (await dry(id, { event_id })).body;
  expect([data.status, data.steps.length]).toEqual(['failed', 1 + 2 * 21]);
});

test('a dry run ends after 1,000 steps, and at a node that an import has left incomplete', async () => {
  const graph = chain(MANUAL, ['action:wait', { seconds: 60 }], say('Again'));
  const [, wait, line] = graph.nodes;
  const { id } = (await owner.send('POST', PATH, { name: 'Round' })).body.data;
  const edges = [...graph.edges, { from: line!.id, to: wait!.id }];
  await owner.send('PUT', `${PATH}/${id}/graph`, { revision: 0, nodes: graph.nodes, edges });
  const { data } = (await dry(id)).body;
  expect([data.status, data.steps.length]).toEqual(['failed', 1_000]);

  const nodes = [
    { id: '1', type: 'trigger:manual', config: {} },
    { id: '2', type: 'action:run_automation', config: {} },
  ];
  const of = { format: 'lumio:automation', version: 1, name: 'In', nodes, edges: [{ from: '1', to: '2' }] };
  const imported = (await owner.send('POST', `${PATH}/import`, of)).body.data;
  expect((await dry(imported.id)).body.data).toMatchObject({
    ...{ status: 'failed', steps: [{ output: 'next' }, { status: 'failed', error: 'incomplete', input: null }] },
  });
});
