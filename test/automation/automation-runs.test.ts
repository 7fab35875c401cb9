import { randomInt, randomUUID } from 'node:crypto';
import { WebSocket } from 'ws';
import { CAUSE_MS } from '../../domain/automation/automation-runs';
import { Automations, chain } from '../support/automations';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { FakeChatCloud } from '../vendors/chat-cloud';

const WEB = 'https://app.example';
const PATH = '/v1/automations';
let cloud: FakeChatCloud;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
let vendors: VendorCloud;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({
    env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  vendors = new VendorCloud(server.base_url, server.credentials);
  const begun = await owner.send('POST', '/v1/connections/oauth/kick/start', { kind: 'bot', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, '555');
  expect((await owner.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});
let automations: Automations;
beforeEach(() => {
  cloud.sent.length = 0;
  automations = new Automations(owner);
});
afterEach(() => automations.drop());

type Config = Record<string, unknown>;
const automation = (graph: ReturnType<typeof chain>, more?: object) => automations.make(graph, more);
const runsOf = (id: string, query?: string) => automations.runsOf(id, query);
const ended = (id: string, count?: number) => automations.ended(id, count);
const run = (id: string, headers?: object) => automations.run(id, headers);
const lines = () => cloud.sent.map(({ body }) => body['content'] as string);
const FOLLOW = ['trigger:event', { event_types: ['kick:follower'] }] as const;
const MANUAL = ['trigger:manual'] as const;
const say = (message: string) => ['action:send_chat_message', { message, platforms: ['kick'] }] as const;

/** Messages of a channel, from now on. */
async function listening(channel: string, token: string) {
  const messages: any[] = [];
  const socket = new WebSocket(`${server.ws_url}?token=${encodeURIComponent(token)}`);
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString())));
  await new Promise((open, fail) => socket.once('open', open).once('error', fail));
  socket.send(JSON.stringify({ type: 'subscribe', channel }));
  await eventually(async () => messages.find(({ type }) => type === 'subscribed'), 'the subscription');
  return { messages, close: () => socket.close() };
}

test('a signed follow yields one line, one run with its steps, and messages of the account alone', async () => {
  const { account_id, access_token, other } = server.credentials;
  const own = await listening(`automations:${account_id}`, access_token);
  const foreign = await listening(`automations:${other.account_id}`, other.access_token);
  const graph = chain(FOLLOW, ['action:send_chat_message', { message: 'Thanks on {{platform}}, {{x}}{one}' }]);
  const id = await automation(graph);
  const filtered = await automation(
    chain(['trigger:event', { event_types: ['kick:follower'], filters: [{ path: 'x.y', op: 'equals', value: 1 }] }]),
  );
  await vendors.kickFollow(71);
  const [first] = await ended(id);
  expect(lines()).toEqual(['Thanks on kick, {one}']);
  expect(first).toMatchObject({
    ...{ automation_id: id, reward_id: null, status: 'succeeded', trigger: 'trigger:event', depth: 0, error: null },
  });
  const { body } = await owner.get(`${PATH}/runs/${first.id}`);
  expect(body.data.steps).toMatchObject([
    { node_id: graph.nodes[0]!.id, status: 'succeeded', output: 'next' },
    {
      ...{ node_id: graph.nodes[1]!.id, type: 'action:send_chat_message', status: 'succeeded', output: 'done' },
      input: { message: 'Thanks on kick, {one}' },
    },
  ]);
  const event_id = (await owner.get('/v1/events?types=kick:follower')).body.data[0].id;
  expect(first.event_id).toBe(event_id);
  const types = () => own.messages.filter(({ type }) => type === 'automation').map(({ data }) => data.type);
  await eventually(async () => (types().includes('run:finished') ? true : undefined), 'the messages');
  expect(types()).toEqual(['run:started', 'run:step', 'run:finished']);
  expect(own.messages.find(({ event_type }) => event_type === 'run:step').data).toEqual({
    ...{ type: 'run:step', automation_id: id, run_id: first.id, status: 'succeeded', node_id: graph.nodes[1]!.id },
  });
  expect(foreign.messages.filter(({ type }) => type === 'automation')).toEqual([]);
  expect(await runsOf(filtered)).toEqual([]);
  expect((await stranger.get(`${PATH}/${id}/runs`)).status).toBe(404);
  expect((await stranger.get(`${PATH}/runs/${first.id}`)).status).toBe(404);
  for (const one of [own, foreign]) one.close();
});

test('a redemption runs the action of its enabled reward once', async () => {
  const { account_id, access_token } = server.credentials;
  const own = await listening(`automations:${account_id}`, access_token);
  const reward = async (body: object) =>
    (await owner.send('POST', '/v1/rewards', { platform: 'twitch', title: 'Hug', platform_reward_id: 'r-1', ...body }))
      .body.data.id as string;
  const action = { type: 'action:send_chat_message', config: { message: 'For {{event.type}}', platforms: ['kick'] } };
  const id = await reward({ action });
  const others = [
    await reward({ action, platform_reward_id: 'r-2' }),
    await reward({ action, platform: 'kick' }),
    await reward({}),
    await reward({ action }),
  ];
  expect((await owner.send('PATCH', `/v1/rewards/${others[3]}`, { enabled: false })).status).toBe(200);
  const redeem = () =>
    owner.send('POST', '/v1/events/emit', {
      ...{ event_type: 'twitch:reward', external_id: 'redeemed', raw: { reward: { id: 'r-1' }, user_id: '4242' } },
    });
  const { event } = (await redeem()).body;
  expect((await redeem()).body.event.id).toBe(event.id);
  const finished = await eventually(
    async () => own.messages.find(({ event_type }) => event_type === 'run:finished'),
    'the end of the run',
  );
  expect(finished.data).toMatchObject({ reward_id: id, status: 'succeeded' });
  const { data } = (await owner.get(`${PATH}/runs/${finished.data.run_id}`)).body;
  expect(data).toMatchObject({ automation_id: null, reward_id: id, event_id: event.id, trigger: 'trigger:event' });
  expect(data.steps).toMatchObject([{ type: 'trigger:event' }, { node_id: id, type: action.type, output: 'done' }]);
  expect((await stranger.get(`${PATH}/runs/${finished.data.run_id}`)).status).toBe(404);
  const waiting = { type: 'action:wait', config: { seconds: 600 } };
  await owner.send('PATCH', `/v1/rewards/${id}`, { action: waiting });
  await owner.send('POST', '/v1/events/emit', { event_type: 'twitch:reward', raw: { reward: { id: 'r-1' } } });
  const started = await eventually(
    async () => own.messages.filter(({ event_type }) => event_type === 'run:started')[1],
    'the second run',
  );
  expect((await owner.send('PATCH', `/v1/rewards/${id}`, { enabled: false })).status).toBe(200);
  const last = () => own.messages.filter(({ event_type }) => event_type === 'run:finished')[1];
  expect((await eventually(async () => last(), 'the end of the second run')).data).toMatchObject({
    ...{ reward_id: id, run_id: started.data.run_id, status: 'cancelled' },
  });
  expect(own.messages.filter(({ event_type }) => event_type === 'run:started')).toHaveLength(2);
  expect(lines()).toEqual(['For twitch:reward']);
  own.close();
  for (const one of [id, ...others]) await owner.send('DELETE', `/v1/rewards/${one}`, undefined);
});

test('a run by hand begins at the manual trigger, once for a key, and is listed by its status', async () => {
  const id = await automation(chain(MANUAL, say('By hand')));
  const [one, again] = [await run(id, { 'idempotency-key': 'hand' }), await run(id, { 'idempotency-key': 'hand' })];
  expect(one).toMatchObject({ status: 202, body: { data: { automation_id: id, trigger: 'trigger:manual' } } });
  expect(again.body).toEqual(one.body);
  expect(await ended(id)).toMatchObject([{ id: one.body.data.id, status: 'succeeded' }]);
  expect(lines()).toEqual(['By hand']);
  expect(await runsOf(id, '?status=failed')).toEqual([]);
  const { data } = await owner.gql(
    `{ automationRuns(id: "${id}", limit: 1) { items { id status } } automationRun(runId: "${one.body.data.id}") { steps { type } } }`,
  );
  expect(data.automationRuns.items).toEqual([{ id: one.body.data.id, status: 'succeeded' }]);
  expect(data.automationRun.steps).toHaveLength(2);
  expect((await stranger.send('POST', `${PATH}/${id}/run`, {})).status).toBe(404);
  const log = (await owner.get('/v1/account/audit-log?action=automation_run:requested')).body.data;
  expect(log).toMatchObject([{ action: 'automation_run:requested' }]);
  const without = await automation(chain(FOLLOW));
  expect(await run(without)).toMatchObject({ status: 409, body: { error: 'CONFLICT' } });
  await owner.send('PATCH', `${PATH}/${id}`, { enabled: false });
  expect((await run(id)).status).toBe(409);
});

test('a refused call goes on at failed, or ends the run; a cut one is unknown', async () => {
  const failing = await automation(chain(MANUAL, ['action:send_chat_message', { message: 'x', platforms: ['trovo'] }]));
  await run(failing);
  expect(await ended(failing)).toMatchObject([{ status: 'failed', error: 'no_bot' }]);
  const handled = await automation(
    chain(MANUAL, ['action:send_chat_message', { message: 'x', platforms: ['trovo'] }], [
      ...['action:send_chat_message', { message: 'Else', platforms: ['kick'] }, 'failed'],
    ] as unknown as readonly [string, Config, string]),
  );
  await run(handled);
  expect(await ended(handled)).toMatchObject([{ status: 'succeeded' }]);
  expect(lines()).toEqual(['Else']);
  cloud.fail({ path: '/public/v1/chat', status: 'cut' });
  const cut = await automation(chain(MANUAL, say('Cut')));
  await run(cut);
  expect(await ended(cut)).toMatchObject([{ status: 'unknown' }]);
});

test('a waiting run goes on when the wait ends, and is cancelled with its automation', async () => {
  const short = await automation(chain(MANUAL, ['action:wait', { seconds: 1 }], say('Waited')));
  await run(short);
  expect(await ended(short)).toMatchObject([{ status: 'succeeded' }]);
  expect(lines()).toEqual(['Waited']);
  const long = await automation(chain(MANUAL, ['action:wait', { seconds: 3_600 }], say('Never')));
  await run(long);
  await eventually(async () => (await runsOf(long, '?status=waiting'))[0], 'the waiting run');
  await owner.send('PATCH', `${PATH}/${long}`, { enabled: false });
  const [cancelled] = await ended(long);
  expect(cancelled).toMatchObject({ status: 'cancelled' });
  const { steps } = (await owner.get(`${PATH}/runs/${cancelled.id}`)).body.data;
  expect(steps).toMatchObject([{ status: 'succeeded' }, { status: 'cancelled', type: 'action:wait' }]);
});

/** Does something before the reactor of this name reads further events. */
const ahead = (reactor: string, act: () => Promise<void>) =>
  server.database!.db.transaction(async (tx) => {
    const held = await tx.query('select 1 as one from checkpoints where projection = $1 for update', [reactor]);
    expect(held.length).toBeGreaterThan(0);
    await act();
  });

test('a late end of earlier runs spares a run that began after its automation was enabled again', async () => {
  const id = await automation(chain(MANUAL, ['action:wait', { seconds: 3 }], say('Later')));
  await ahead('reactor:automation-ends', async () => {
    for (const enabled of [false, true])
      expect((await owner.send('PATCH', `${PATH}/${id}`, { enabled })).status).toBe(200);
    await run(id);
    await eventually(async () => (await runsOf(id, '?status=waiting'))[0], 'the waiting run');
  });
  expect(await ended(id)).toMatchObject([{ status: 'succeeded' }]);
  expect(lines()).toEqual(['Later']);
});

test('conditions decide, a cooldown is true once, and automations that start each other stop', async () => {
  const cooled = await automation(
    chain(
      MANUAL,
      ['condition:compare', { left: '{{platform}}10', op: 'less', right: 9.5 }],
      ['condition:not', { condition: { left: 'A', op: 'starts_with', right: 'b' } }, 'false'],
      ['condition:platform', { platforms: ['kick'] }],
      ['condition:role', { min_role: 'everyone' }, 'false'],
      ['condition:chance', { percent: 100 }],
      ['condition:live', {}],
      ['condition:cooldown', { seconds: 60, scope: 'global' }, 'false'],
      say('Once'),
    ),
  );
  await Promise.all([run(cooled), run(cooled)]);
  await ended(cooled, 2);
  expect(lines()).toEqual(['Once']);

  const raw = { text: 'x {{unknown}}{y}', list: [1] };
  const loop = await automation(
    chain(['trigger:event', { event_types: ['my:loop'] }], ['action:emit_event', { event_type: 'my:loop', raw }]),
  );
  expect((await owner.send('POST', '/v1/events/emit', { event_type: 'my:loop' })).status).toBeLessThan(300);
  const loops = await ended(loop, 8);
  expect(loops.map(({ depth }) => depth).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const newest = await eventually(async () => {
    const events = (await owner.get('/v1/events?types=my:loop')).body.data;
    return events.length === 9 ? events[0] : undefined;
  }, 'the last event');
  expect(newest.raw).toEqual({ text: 'x {y}', list: [1] });

  const called = await automation(chain(['trigger:automation'], say('Called')));
  const caller = await automation(chain(MANUAL, ['action:run_automation', { automation_id: called }]));
  await run(caller);
  expect(await ended(called)).toMatchObject([{ status: 'succeeded', depth: 1, trigger: 'trigger:automation' }]);
  // The window after a wait is that of the cause, and not what the caller had left.
  const windows = await server.database!.db.query(
    `select distinct window_ms, expires_at from automation_runs where automation_id in ($1, $2)`,
    [called, caller],
  );
  expect(windows).toMatchObject([{ window_ms: CAUSE_MS }]);
});

const writeLine = (content: string, of?: { user_id?: number; message_id?: string }) => vendors.kickLine(content, of);

test('a command starts its automation once for a line, with its arguments, within its cooldowns', async () => {
  const id = await automation(chain(['trigger:bot_command'], say('{{displayName}} {{args}}|{{arg.1}}|{{target}}')));
  const command = { name: 'go', response_type: 'automation', automation_id: id, cooldown_user: 60 };
  const foreign = await stranger.send('POST', '/v1/bot-commands', command);
  expect(foreign).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });
  const created = await owner.send('POST', '/v1/bot-commands', command);
  expect(created).toMatchObject({ status: 201, body: { data: { response_type: 'automation', automation_id: id } } });
  const path = `/v1/bot-commands/${created.body.data.id}`;
  const other = (await stranger.send('POST', PATH, { name: 'Other' })).body.data.id;
  expect((await owner.send('PATCH', path, { automation_id: other })).status).toBe(404);
  expect((await owner.send('PATCH', path, { automation_id: null })).status).toBe(400);
  const first = await writeLine('!go @ada now');
  await writeLine('!go @ada now', { message_id: first });
  await writeLine('!go again');
  await writeLine('!go', { user_id: 43 });
  const runs = await ended(id, 2);
  expect(runs).toHaveLength(2);
  expect(runs).toMatchObject([{ trigger: 'trigger:bot_command', status: 'succeeded', event_id: null }, {}]);
  expect(lines().sort()).toEqual(['Name 42 @ada now|@ada|ada', 'Name 43 ||Name 43']);
  await owner.send('DELETE', path, undefined);
});

test("a person's first line in the account starts automations once, by their platforms", async () => {
  const id = await automation(chain(['trigger:first_message', { platforms: ['kick'] }], say('Hi {{displayName}}')));
  const other = await automation(chain(['trigger:first_message', { platforms: ['trovo'] }], say('Not here')));
  const [one, two] = [randomInt(1_000_000, 2_000_000), randomInt(2_000_000, 3_000_000)];
  const message_id = await writeLine('Hello', { user_id: one });
  await writeLine('Hello', { user_id: one, message_id });
  await writeLine('Again', { user_id: one });
  await writeLine('I am the bot', { user_id: 555 });
  await writeLine('Hello', { user_id: two });
  expect(await ended(id, 2)).toMatchObject([{ trigger: 'trigger:first_message', status: 'succeeded' }, {}]);
  expect(lines().sort()).toEqual([`Hi Name ${one}`, `Hi Name ${two}`].sort());
  expect(await runsOf(other)).toEqual([]);
});

test('messages that are broadcast and not stored start automations, test events start none', async () => {
  const { account_id, system_key } = server.credentials;
  const system = new ApiClient(server.base_url, system_key);
  const turned = await automation(chain(['trigger:message', { types: ['channel:*'] }], say('{{event.type}}')));
  const saved = await automation(chain(['trigger:message', { types: ['obs:scene'] }], say('{{event.type}}')));
  const report = (event_type: string, headers = {}) =>
    system.send(
      'POST',
      '/v1/events/emit-bot',
      { account_id, event_type, platform: 'obs', username: 'ada', raw: {} },
      headers,
    );
  const of = (event_type: string) => ({ event_type, platform: 'obs' });
  expect((await owner.send('POST', '/v1/events/test', of('obs:scene'))).status).toBe(200);
  expect((await owner.send('POST', '/v1/events/emit', of('obs:scene'))).status).toBe(200);
  for (const event_type of ['obs:other', 'obs:scene', 'obs:scene'])
    expect((await report(event_type, { 'idempotency-key': event_type })).status).toBe(200);
  expect(await ended(saved)).toMatchObject([{ trigger: 'trigger:message', status: 'succeeded', event_id: null }]);
  const begun = { event_type: 'kick:stream_online', raw: { is_live: true, started_at: new Date().toISOString() } };
  expect((await owner.send('POST', '/v1/events/emit', begun)).status).toBe(200);
  expect((await ended(turned)).length).toBe(1);
  const offline = await automation(
    chain(['trigger:message', { types: ['channel:offline'] }], say('{{event.type}} {{event.raw.platform}}')),
  );
  const over = { event_type: 'kick:stream_offline', raw: { is_live: false } };
  for (const external_id of ['over', 'over'])
    expect((await owner.send('POST', '/v1/events/emit', { ...over, external_id })).status).toBe(200);
  expect(await ended(offline)).toMatchObject([{ trigger: 'trigger:message', status: 'succeeded' }]);
  expect(await ended(turned, 2)).toHaveLength(2);
  expect(lines().sort()).toEqual(['channel:offline', 'channel:offline kick', 'channel:online', 'obs:scene']);
});

test('an event without an automation stays out of the ledger, and its repetition starts none', async () => {
  const { db } = server.database!;
  const [early, later] = [randomUUID(), randomUUID()];
  await vendors.kickFollow(90, early);
  const readBy = (projection: string) =>
    eventually(async () => {
      const behind = await db.query(
        `select 1 from broker_topics t join broker_partitions p on p.topic_id = t.topic_id
           left join checkpoints c on c.projection = $1 and c.source = t.topic and c.partition = p.partition
         where t.topic = 'platform-events' and coalesce(c.position, '0')::bigint < p.next_offset`,
        [projection],
      );
      return behind.length === 0 ? true : undefined;
    }, `${projection} to have read all events`);
  for (const projection of ['event-log', 'automation-events', 'discord-feed']) await readBy(projection);
  const id = await automation(chain(FOLLOW, say('hello')));
  await vendors.kickFollow(90, early);
  await vendors.kickFollow(91, later);
  await ended(id);
  await readBy('automation-events');
  expect(await runsOf(id)).toHaveLength(1);
  const rows = await db.query(
    `select projection, external_id like '%' || $1 as is_early from ledger
     where external_id like '%' || $1 or external_id like '%' || $2 order by 2 desc, 1`,
    [early, later],
  );
  expect(rows.map(({ projection, is_early }) => [projection, is_early])).toEqual([
    ['event-log', true],
    ['automation-events', false],
    ['event-log', false],
  ]);
});

test('missed due times start one run together, a disabled automation has none', async () => {
  const id = await automation(chain(['trigger:schedule', { interval_seconds: 60 }], say('Due')));
  const { db } = server.database!;
  const due = () => db.query('select 1 as one from automation_schedules where automation_id = $1', [id]);
  await eventually(async () => (await due())[0], 'the due time');
  const move = (by: string) =>
    db.query(`update automation_schedules set next_due_at = now() - $2::interval where automation_id = $1`, [id, by]);
  await move('10 minutes');
  expect(await ended(id)).toMatchObject([{ status: 'succeeded', trigger: 'trigger:schedule', event_id: null }]);
  expect(lines()).toEqual(['Due']);
  await owner.send('PATCH', `${PATH}/${id}`, { enabled: false });
  await eventually(async () => ((await due()).length === 0 ? true : undefined), 'no due time');
  await owner.send('PATCH', `${PATH}/${id}`, { enabled: true });
  await eventually(async () => (await due())[0], 'the next due time');
  expect(await runsOf(id)).toHaveLength(1);
  const { nodes } = (await owner.get(`${PATH}/${id}`)).body.data;
  expect(nodes).toHaveLength(2);
  await owner.send('DELETE', `${PATH}/${id}`, undefined);
  await eventually(async () => ((await due()).length === 0 ? true : undefined), 'no due time');
});

test('a second run is skipped, restarts the first, or is queued', async () => {
  const statuses = async (second_run: string) => {
    const id = await automation(chain(MANUAL, ['action:wait', { seconds: 3_600 }]), { second_run });
    await run(id);
    await eventually(async () => (await runsOf(id, '?status=waiting'))[0], 'the waiting run');
    await run(id);
    const expected = { skip: 'cancelled', restart: 'waiting', queue: 'pending' }[second_run];
    return eventually(async () => {
      const [second, first] = await runsOf(id);
      return second.status === expected ? [first.status, second.status] : undefined;
    }, 'the second run');
  };
  expect(await statuses('skip')).toEqual(['waiting', 'cancelled']);
  expect(await statuses('restart')).toEqual(['cancelled', 'waiting']);
  expect(await statuses('queue')).toEqual(['waiting', 'pending']);
});
