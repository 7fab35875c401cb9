import { randomUUID } from 'node:crypto';
import { PERSONAL_START } from '../../domain/automation/automation-runs';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { disableFailing } from '../../services/automation/automations/webhooks';
import { Automations, chain } from '../support/automations';
import { Listener } from '../support/listener';
import { startServer, type TestServer } from '../support/server';
import { uploadedSound } from '../support/uploaded-sound';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { WebhookReceiver } from '../support/webhook-receiver';
import { FakeChatCloud } from '../vendors/chat-cloud';

const WEB = 'https://app.example';
let cloud: FakeChatCloud;
let receiver: WebhookReceiver;
let server: TestServer;
let owner: ApiClient;
let vendors: VendorCloud;
let automations: Automations;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  cloud.discord.channels.set('9001', [{ id: '11', name: 'general', type: 0, position: 1 }]);
  receiver = await new WebhookReceiver().start();
  const discord = { LUMIO_DISCORD__BOT_TOKEN: 'bot-token' };
  server = await startServer({ env: { ...cloud.env(), ...discord, LUMIO_HOSTS__WEB: WEB } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  vendors = new VendorCloud(server.base_url, server.credentials);
  automations = new Automations(owner);
  for (const [platform, id] of [
    ['kick', '555'],
    ['twitch', '556'],
    ['discord', '9001'],
  ] as const) {
    const begun = await owner.send('POST', `/v1/connections/oauth/${platform}/start`, { kind: 'bot', return_to: WEB });
    const { code, state } = cloud.login(begun.body.authorize_url, id);
    const done = await owner.send('POST', `/v1/connections/oauth/${platform}/exchange`, { code, state });
    expect(done).toMatchObject({ status: 200 });
  }
});
afterAll(async () => {
  await server?.dispose();
  await Promise.all([receiver?.close(), cloud?.close()]);
});
afterEach(() => automations.drop());

const variables = async () =>
  Object.fromEntries(
    ((await owner.get('/v1/automations/variables')).body.data as any[]).map(({ name, value }) => [name, value]),
  );
const set = (name: string, value: unknown) => ['action:set_variable', { name, value }] as const;
const add = (name: string, amount: unknown) => ['action:add_to_variable', { name, amount }] as const;

const FOLLOW = ['trigger:event', { event_types: ['kick:follower'] }] as const;

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
  const id = await automations.make(
    chain(FOLLOW, set('last', '{{displayName}}'), set('kept', 'a text'), set('number', '7')),
  );
  await vendors.kickFollow(73);
  await automations.ended(id);
  expect(await variables()).toMatchObject({ last: 'viewer_73', kept: 'a text', number: 7 });
  const rows = await server.database!.db.query(
    `select name, value, key_id is null as is_clear from automation_variables
     where name in ('last', 'kept') order by 1`,
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

test('a graph names things of the account alone', async () => {
  const overlay = async () => {
    const id = (await owner.send('POST', '/v1/overlays', { name: 'One' })).body.data.id;
    const put = await owner.send('PUT', `/v1/overlays/${id}/layers`, { revision: 0, layers: [{ type: 'text' }] });
    return { overlay_id: id as string, layer_id: put.body.data.layers[0].id as string };
  };
  const [one, two] = [await overlay(), await overlay()];
  const { id } = (await owner.send('POST', '/v1/automations', { name: 'One' })).body.data;
  const put = async (type: string, config: Record<string, unknown>) => {
    const graph = chain(['trigger:manual'], [type, config]);
    const { status, body } = await owner.send('PUT', `/v1/automations/${id}/graph`, { revision: 0, ...graph });
    return { status, message: body.message?.replace(graph.nodes[1]!.id, 'N') };
  };
  expect(await put('action:set_layer', { ...one, layer_id: two.layer_id, visible: true })).toEqual({
    ...{ status: 400, message: `node N: config.layer_id: the account has no layer ${two.layer_id}` },
  });
  expect(await put('action:send_discord_message', { channel_id: '12', message: 'x' })).toEqual({
    ...{ status: 400, message: 'node N: config.channel_id: the account has no discord channel 12' },
  });
  cloud.fail({ path: '/api/v10/guilds/9001/channels', status: 500 });
  expect(await put('action:send_discord_message', { channel_id: '11', message: 'x' })).toMatchObject({ status: 503 });
  expect(await put('action:set_layer', { ...one, visible: true })).toMatchObject({ status: 200 });
  await owner.send('DELETE', `/v1/automations/${id}`, undefined);
});

test('unknown names are noted in the step', async () => {
  const { steps } = await automations.walk(set('a', '{{nobody}}|{{var.nothing}}|{{platform}}'), set('b', 'x'));
  expect(steps[0].input).toMatchObject({ value: '||', unknown_names: ['nobody', 'var.nothing', 'platform'] });
  expect(steps[1].input).toEqual({ name: 'b', value: 'x' });
});

test('a step sends a signed webhook once, with values encoded for their place', async () => {
  const emitted = (type: string) => ['trigger:event', { event_types: [type] }] as const;
  const url = `${receiver.url}/{{event.raw.text}}?q={{event.raw.text}}`;
  const body = '{"text":"{{event.raw.text}}","number":12345678901234567890}';
  const id = await automations.make(
    chain(emitted('my:hook'), ['action:send_webhook', { url, body }], ['action:send_webhook', { url: receiver.url }]),
  );
  const { secret } = (await owner.send('POST', `/v1/automations/${id}/rotate-webhook-secret`, {})).body.data;
  const raw = { text: 'a"b\n&c/{{platform}}' };
  expect((await owner.send('POST', '/v1/events/emit', { event_type: 'my:hook', raw })).status).toBeLessThan(300);
  const [run] = await automations.ended(id);
  expect(run).toMatchObject({ status: 'succeeded' });
  expect(receiver.received).toHaveLength(2);
  const [filled, event] = receiver.received.splice(0);
  const part = encodeURIComponent(raw.text);
  expect(filled).toMatchObject({
    path: `/hook/${part}?q=${part}`,
    body: body.replace(/{{.*}}/, 'a\\"b\\n&c/{{platform}}'),
  });
  expect(JSON.parse(event!.body)).toMatchObject({ id: run.event_id, type: 'my:hook', raw });
  for (const one of [filled!, event!]) expect(receiver.signatureOf(one, secret)).toBe(one.headers['webhook-signature']);
  expect(new Set([filled, event].map((one) => one!.headers['webhook-id'])).size).toBe(2);
  const failing = async (webhook: Record<string, unknown>) =>
    (await automations.walk(['action:send_webhook', webhook])).run;
  receiver.status = 302;
  expect(await failing({ url: receiver.url })).toMatchObject({ status: 'failed', error: 'redirected' });
  receiver.status = 'cut';
  expect(await failing({ url: receiver.url })).toMatchObject({ status: 'unknown', error: 'no_answer' });
  receiver.status = 200;
  await automations.walk(set('long', 'x'.repeat(500)));
  const long = `["${'{{var.long}}'.repeat(200)}"]`;
  expect(await failing({ url: receiver.url, body: long })).toMatchObject({ error: 'body_too_large' });
  await automations.walk(set('up', '..'));
  expect(await failing({ url: `${receiver.url}/{{var.up}}/admin` })).toMatchObject({ error: 'other_path' });
  expect(receiver.received).toHaveLength(2);
});

test('a step whose values are too long fails before it does anything, in a dry run as well', async () => {
  const message = '{{event.raw.text}}'.repeat(100);
  const raw = { text: message };
  const emit = ['action:emit_event', { event_type: 'my:longer', raw }] as const;
  const on = (type: string) => ['trigger:event', { event_types: [type] }] as const;
  const id = await automations.make(chain(on('my:long'), emit));
  const next = await automations.make(chain(on('my:longer'), emit));
  const sent = { event_type: 'my:long', raw: { text: 'x'.repeat(4_000) } };
  const event_id = (await owner.send('POST', '/v1/events/emit', sent)).body.event.id;
  const failed = { status: 'failed', error: 'input_too_large' };
  expect(await automations.ended(id)).toMatchObject([failed]);
  expect(await automations.runsOf(next)).toEqual([]);
  const dry = (await owner.send('POST', `/v1/automations/${id}/dry-run`, { event_id })).body.data;
  expect(dry).toMatchObject({ status: 'failed', steps: [{}, { ...failed, input: null, output: null }] });
  // Values within the bound are sent.
  const short = (await owner.send('POST', '/v1/events/emit', { ...sent, raw: { text: 'x'.repeat(400) } })).body.event
    .id;
  const [run] = await automations.ended(next);
  expect(run).toMatchObject({ depth: 1, ...failed });
  expect((await automations.ended(id, 2)).find(({ event_id: of }) => of === short)).toMatchObject({
    status: 'succeeded',
  });
});

test('a step posts into a channel of the own Discord server alone', async () => {
  const post = (channel_id: string, message = 'News {{var.x}}@everyone') =>
    ['action:send_discord_message', { channel_id, message }] as const;
  expect((await automations.walk(post('11'))).run).toMatchObject({ status: 'succeeded' });
  expect(cloud.discord.posted).toMatchObject([{ channel_id: '11', content: 'News @everyone' }]);
  expect((await automations.walk(post('11', '{{var.x}}'))).run).toMatchObject({ error: 'empty_message' });
  cloud.fail({ path: '/api/v10/channels/11/messages', status: 'cut' });
  expect((await automations.walk(post('11'))).run).toMatchObject({ status: 'unknown', error: 'no_answer' });
  expect(cloud.discord.posted).toHaveLength(1);
});

test('a step moderates the author of the cause, and shows the channel of a person', async () => {
  const id = await automations.make(chain(['trigger:bot_command'], ['action:moderate', { action: 'delete' }]));
  const command = { name: 'bye', response_type: 'automation', automation_id: id };
  const path = `/v1/bot-commands/${(await owner.send('POST', '/v1/bot-commands', command)).body.data.id}`;
  const message_id = await vendors.kickLine('!bye');
  expect(await automations.ended(id)).toMatchObject([{ status: 'succeeded' }]);
  expect(cloud.acts.splice(0)).toMatchObject([{ route: `DELETE /public/v1/chat/${message_id}` }]);
  await owner.send('DELETE', path, undefined);
  expect((await automations.walk(['action:moderate', { action: 'ban' }])).run).toMatchObject({ error: 'no_author' });
  const shout = (user: string) => ['action:shout_out', { user }] as const;
  expect((await automations.walk(shout('@4242'))).run).toMatchObject({ status: 'succeeded' });
  expect(cloud.acts.splice(0)).toMatchObject([
    { route: 'POST /helix/chat/shoutouts', query: { to_broadcaster_id: '4242' } },
  ]);
  expect((await automations.walk(shout('nobody'))).run).toMatchObject({ error: 'person_not_found' });
  expect(cloud.acts).toEqual([]);
  const log = (await owner.get('/v1/account/audit-log?action=chat:moderated')).body.data;
  expect(log).toMatchObject([{ action: 'chat:moderated' }]);
});

test('a step plays a sound and shows a layer of the account', async () => {
  const { account_id, access_token } = server.credentials;
  const sounds = await Listener.to(server.ws_url, access_token, `sounds:${account_id}`);
  const sound_id = await uploadedSound(server.base_url, access_token);
  const play = ['action:play_sound', { sound_id, volume: 0.5 }] as const;
  expect((await automations.walk(play)).run).toMatchObject({ status: 'succeeded' });
  const played = await sounds.next(({ event_type }) => event_type === 'sound:play');
  expect(played['data']).toMatchObject({ sound_id, volume: 0.5, target: null });
  expect((await fetch(`${server.base_url}${played['data'].url}`)).status).toBe(200);
  sounds.close();
  const overlay_id = (await owner.send('POST', '/v1/overlays', { name: 'One' })).body.data.id;
  const layers = { revision: 0, layers: [{ type: 'text', visible: false }] };
  const put = await owner.send('PUT', `/v1/overlays/${overlay_id}/layers`, layers);
  const layer_id = put.body.data.layers[0].id;
  const show = (visible: boolean) => ['action:set_layer', { overlay_id, layer_id, visible }] as const;
  expect((await automations.walk(show(true), show(true))).run).toMatchObject({ status: 'succeeded' });
  const shown = (await owner.get(`/v1/overlays/${overlay_id}/layers`)).body.data;
  expect(shown).toMatchObject({ layers: [{ id: layer_id, visible: true }] });
});

test('webhooks that fail for a day disable their automation, with an entry of the audit log', async () => {
  const hook = ['action:send_webhook', { url: receiver.url }] as const;
  const id = await automations.make(chain(['trigger:manual'], hook));
  const { db } = server.database!;
  receiver.status = 500;
  await automations.run(id);
  await automations.ended(id);
  await db.query(`update automation_webhook_failures set failing_since = failing_since - interval '25 hours'`);
  await automations.run(id);
  await automations.ended(id, 2);
  receiver.status = 200;
  const events = await createPostgresEventStore({ pool: db.pool, wakeups: createLocalWakeups() });
  expect(await disableFailing({ db, events })).toBe(1);
  await events.close();
  const shown = await eventually(async () => {
    const { data } = (await owner.get(`/v1/automations/${id}`)).body;
    return data.enabled ? undefined : data;
  }, 'the end of the automation');
  expect(shown).toMatchObject({ enabled: false, disabled_reason: 'webhook_failures' });
  expect(await automations.run(id)).toMatchObject({ status: 409 });
  const entry = await eventually(
    async () => (await owner.get(`/v1/account/audit-log?action=automation:updated&target_id=${id}`)).body.data[0],
    'the entry of the audit log',
  );
  expect(entry).toMatchObject({ target: { id }, actor: { kind: 'service' } });
});

test('two follows within a minute are thanked once', async () => {
  const cooldown = ['condition:cooldown', { seconds: 60, scope: 'global' }] as const;
  const thanks = ['action:send_chat_message', { message: 'Thanks {{displayName}}' }, 'true'] as const;
  const id = await automations.make(chain(FOLLOW, cooldown, thanks));
  const before = cloud.sent.length;
  await vendors.kickFollow(81);
  await automations.ended(id);
  await vendors.kickFollow(82);
  expect(await automations.ended(id, 2)).toMatchObject([{ status: 'succeeded' }, { status: 'succeeded' }]);
  expect(cloud.sent.slice(before).map(({ body }) => body['content'])).toEqual(['Thanks viewer_81']);
});

test('two automations that start each other stop', async () => {
  const made = await Promise.all(
    [1, 2].map(async () => (await owner.send('POST', '/v1/automations', { name: 'One', enabled: true })).body.data.id),
  );
  const put = async (id: string, automation_id: string) => {
    const graph = chain(['trigger:automation'], ['action:run_automation', { automation_id }]);
    const manual = { id: randomUUID(), type: 'trigger:manual', config: {} };
    const edge = { from: manual.id, to: graph.nodes[1]!.id };
    const body = { revision: 0, nodes: [...graph.nodes, manual], edges: [...graph.edges, edge] };
    expect((await owner.send('PUT', `/v1/automations/${id}/graph`, body)).status).toBe(200);
  };
  await put(made[0], made[1]);
  await put(made[1], made[0]);
  await automations.run(made[0]);
  const runs = (await Promise.all(made.map((id) => automations.ended(id, 4)))).flat();
  expect(runs.map(({ depth }) => depth).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(runs.find(({ depth }) => depth === 7)).toMatchObject({ status: 'failed', error: 'too_deep' });
  for (const id of made) await owner.send('DELETE', `/v1/automations/${id}`, undefined);
});

test('values of a cause without a known person are sealed, too', async () => {
  const id = await automations.make(
    chain(['trigger:event', { event_types: ['my:secret'] }], set('seen', '{{event.raw.text}}')),
  );
  const raw = { text: 'a private word' };
  expect((await owner.send('POST', '/v1/events/emit', { event_type: 'my:secret', raw })).status).toBeLessThan(300);
  const [run] = await automations.ended(id);
  expect((await automations.stepsOf(run.id))[1].input).toEqual({ name: 'seen', value: raw.text });
  const { db } = server.database!;
  const stored = await db.query('select cause, cause_key_id from automation_runs where id = $1', [run.id]);
  const steps = await db.query('select input, input_key_id from automation_steps where run_id = $1', [run.id]);
  expect(JSON.stringify([stored, steps])).not.toContain('private');
  expect(stored).toMatchObject([{ cause_key_id: expect.any(String) }]);
  expect(PERSONAL_START.cause({ account_id: 'a', subject: null })).toBe('automation-start:a');
});

test('ids and names of persons are stored sealed in variables, also those that read as numbers', async () => {
  const names = ['user.id', 'user.name', 'event.raw.amount'];
  const writes = names.map((name) => set(name.replaceAll('.', '_'), `{{${name}}}`));
  const raw = { user_id: '4711', user_name: '4712', amount: '7' };
  const emitted = await automations.make(chain(['trigger:event', { event_types: ['my:person'] }], ...writes));
  const reported = await automations.make(chain(['trigger:message', { types: ['obs:person'] }], ...writes));
  const { account_id, system_key } = server.credentials;
  const { db } = server.database!;
  const stored = () =>
    db.query(
      `select name, type, person, sealed is not null as is_sealed from automation_variables
       where account_id = $1 and name = any($2) order by name`,
      [account_id, names.map((name) => name.replaceAll('.', '_'))],
    );
  const sealed = { type: 'text', person: expect.any(String), is_sealed: true };
  const expected = [
    { name: 'event_raw_amount', type: 'number', person: null, is_sealed: false },
    { name: 'user_id', ...sealed },
    { name: 'user_name', ...sealed },
  ];
  expect((await owner.send('POST', '/v1/events/emit', { event_type: 'my:person', raw })).status).toBe(200);
  expect(await automations.ended(emitted)).toMatchObject([{ status: 'succeeded' }]);
  expect(await stored()).toEqual(expected);
  await db.query('delete from automation_variables where account_id = $1', [account_id]);
  const report = { account_id, event_type: 'obs:person', platform: 'obs', username: 'ada', raw };
  const system = new ApiClient(server.base_url, system_key);
  expect((await system.send('POST', '/v1/events/emit-bot', report)).status).toBe(200);
  const [run] = await automations.ended(reported);
  expect(run).toMatchObject({ status: 'succeeded' });
  expect(await stored()).toEqual(expected);
  expect(await db.query('select persons from automation_runs where id = $1', [run.id])).toEqual([
    { persons: [expect.any(String)] },
  ]);
});

test('a run with many long steps is shown, the inputs of the first ones alone', async () => {
  const { run } = await automations.walk(set('a', 'x'));
  await server.database!.db.query(
    `insert into automation_steps (id, run_id, number, node_id, type, status, input, expires_at)
     select gen_random_uuid(), $1, n, gen_random_uuid(), 'action:wait', 'succeeded',
       json_build_object('seconds', repeat('x', 30000))::text, now() from generate_series(3, 800) n`,
    [run.id],
  );
  const steps = await automations.stepsOf(run.id);
  expect(steps).toHaveLength(800);
  const shown = steps.slice(1).map(({ input }) => input !== null);
  expect(shown.lastIndexOf(true) + 1).toBe(shown.filter(Boolean).length);
  expect(shown.filter(Boolean).length).toBeGreaterThan(100);
});

test('emitted events count as bytes of the plan, and fail beyond them', async () => {
  const { account_id } = server.credentials;
  const { db } = server.database!;
  await db.query('delete from emitted_bytes where account_id = $1', [account_id]);
  const emit = ['action:emit_event', { event_type: 'my:counted', raw: { text: 'äx' } }] as const;
  expect((await automations.walk(emit)).run).toMatchObject({ status: 'succeeded' });
  const bytes = async () =>
    Number((await db.query('select bytes from emitted_bytes where account_id = $1', [account_id]))[0]?.['bytes']);
  expect(await bytes()).toBe(14);
  await db.query('update emitted_bytes set bytes = 1 << 30 where account_id = $1', [account_id]);
  expect((await automations.walk(emit)).run).toMatchObject({ status: 'failed', error: 'too_many_bytes' });
  expect((await owner.get('/v1/events?types=my:counted')).body.data).toHaveLength(1);
  await db.query('delete from emitted_bytes where account_id = $1', [account_id]);
});

const rowsOf = async (table: string, account_id: string) =>
  server.database!.db.query<{ status: string }>(`select * from ${table} where account_id = $1`, [account_id]);

test('a feature that is off ends the runs of the account and keeps them', async () => {
  const { account_id } = server.credentials;
  const feature = (enabled: boolean) =>
    owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
      features: [{ key: 'feature:automation', enabled }],
    });
  const id = await automations.make(chain(['trigger:manual'], ['action:wait', { seconds: 3_600 }]));
  await automations.run(id);
  await eventually(async () => (await automations.runsOf(id, '?status=waiting'))[0], 'the waiting run');
  expect((await feature(false)).status).toBe(200);
  await eventually(async () => {
    const open = (await rowsOf('automation_runs', account_id)).filter(({ status }) => status === 'waiting');
    return open.length === 0 ? true : undefined;
  }, 'the end of the run');
  expect((await feature(true)).status).toBe(200);
  const [run] = await eventually(() => automations.runsOf(id), 'the runs');
  expect(run).toMatchObject({ status: 'cancelled' });
});

test('a dissolved account keeps nothing of its automations', async () => {
  const { account_id, access_token } = server.credentials.other;
  const stranger = new ApiClient(server.base_url, access_token);
  const others = new Automations(stranger);
  const graph = chain(
    ['trigger:manual'],
    set('a', 'x'),
    ['condition:cooldown', { seconds: 600, scope: 'global' }],
    ['action:send_webhook', { url: receiver.url }, 'true'],
    ['action:wait', { seconds: 3_600 }],
  );
  const timer = { id: randomUUID(), type: 'trigger:schedule', config: { interval_seconds: 3_600 } };
  const id = await others.make({ ...graph, nodes: [...graph.nodes, timer] });
  await others.run(id);
  await eventually(async () => (await others.runsOf(id, '?status=waiting'))[0], 'the waiting run');
  const tables = ['runs', 'accounts', 'cooldowns', 'variables', 'schedules', 'webhook_secrets'].map(
    (name) => `automation_${name}`,
  );
  for (const table of tables) expect([table, (await rowsOf(table, account_id)).length]).toEqual([table, 1]);
  const accounts = (await stranger.get('/v1/accounts')).body.data as any[];
  const { name } = accounts.find(({ id: one }) => one === account_id);
  expect((await stranger.send('DELETE', `/v1/accounts/${account_id}`, { confirm_name: name })).status).toBe(200);
  for (const table of ['automations', ...tables])
    await eventually(async () => ((await rowsOf(table, account_id)).length === 0 ? true : undefined), `no ${table}`);
  expect(
    await server.database!.db.query(
      'select 1 from automation_steps where run_id not in (select id from automation_runs)',
    ),
  ).toEqual([]);
});
