import { randomUUID } from 'node:crypto';
import { JOB_SCHEMA } from '../../../engines/jobs/names';
import { Automations, chain } from '../../support/automations';
import { runLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';
import { FakeChatCloud } from '../../vendors/chat-cloud';

const WEB = 'https://app.example';
let cloud: FakeChatCloud;
let server: TestServer;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({ env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB } });
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const automationsOf = ({ base_url, credentials }: TestServer) =>
  new Automations(new ApiClient(base_url, credentials.access_token));

test('a redelivery, a kill while a run waits, and a rebuild double nothing', async () => {
  const owner = new ApiClient(server.base_url, server.credentials.access_token);
  const begun = await owner.send('POST', '/v1/connections/oauth/kick/start', { kind: 'bot', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, '555');
  expect((await owner.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
  const id = await automationsOf(server).make(
    chain(
      ['trigger:event', { event_types: ['kick:follower'] }],
      ['action:add_to_variable', { name: 'follows', amount: 1 }],
      ['action:wait', { seconds: 5 }],
      ['action:send_chat_message', { message: 'Thanks', platforms: ['kick'] }],
    ),
  );
  const message_id = randomUUID();
  const follow = () => new VendorCloud(server.base_url, server.credentials).kickFollow(71, message_id);
  await follow();
  await follow();
  await eventually(async () => (await automationsOf(server).runsOf(id, '?status=waiting'))[0], 'the waiting run');
  await server.kill();
  server = await server.restart();
  await follow();
  const ended = () => automationsOf(server).ended(id);
  expect(await ended()).toMatchObject([{ status: 'succeeded' }]);
  for (const name of ['automation-events', 'automations', 'event-log'])
    expect(await runLumio(['rebuild', name, '--quiet'], server.env)).toMatchObject({ code: 0 });
  // A later follow comes behind all that the rebuild could start.
  await new VendorCloud(server.base_url, server.credentials).kickFollow(72);
  await eventually(
    async () => ((await automationsOf(server).runsOf(id)).length >= 2 ? true : undefined),
    'the next run',
  );
  expect(await ended()).toHaveLength(2);
  expect(cloud.sent.map(({ body }) => body['content'])).toEqual(['Thanks', 'Thanks']);
  const { db } = server.database!;
  expect(await db.query(`select value from automation_variables where name = 'follows'`)).toEqual([{ value: '2' }]);
});

test("a kill and a rebuild of all while a reward's run waits double nothing", async () => {
  const ownerOf = ({ base_url, credentials }: TestServer) => new ApiClient(base_url, credentials.access_token);
  const before = cloud.sent.length;
  const id = await automationsOf(server).make(
    chain(
      ['trigger:automation'],
      ['action:wait', { seconds: 3_600 }],
      ['action:add_to_variable', { name: 'hugs', amount: 1 }],
      ['action:send_chat_message', { message: 'A hug', platforms: ['kick'] }],
    ),
  );
  const reward = { platform: 'twitch', title: 'Hug', platform_reward_id: 'r-1' };
  for (const action of [
    { type: 'action:wait', config: { seconds: 3_600 } },
    { type: 'action:run_automation', config: { automation_id: id } },
  ])
    expect((await ownerOf(server).send('POST', '/v1/rewards', { ...reward, action })).status).toBe(201);
  const redeem = (external_id: string) =>
    ownerOf(server).send('POST', '/v1/events/emit', {
      ...{ event_type: 'twitch:reward', external_id, raw: { reward: { id: 'r-1' } } },
    });
  const { db } = server.database!;
  const runs = () =>
    db.query<{ status: string }>(
      `select status from automation_runs where reward_id is not null or automation_id = $1 order by status`,
      [id],
    );
  const reached = (...statuses: string[]) =>
    eventually(async () => {
      const found = (await runs()).map(({ status }) => status);
      return JSON.stringify(found) === JSON.stringify(statuses) ? true : undefined;
    }, `runs that are ${statuses.join()}`);
  expect((await redeem('first')).status).toBe(200);
  await reached('succeeded', 'waiting', 'waiting');
  await server.kill();
  server = await server.restart();
  expect((await redeem('first')).status).toBe(200);
  expect(await runLumio(['rebuild', '--all', '--quiet'], server.env)).toMatchObject({ code: 0 });
  expect((await redeem('first')).status).toBe(200);
  await reached('succeeded', 'waiting', 'waiting');
  const end = `update ${JOB_SCHEMA}._private_jobs set run_at = now() where locked_at is null and key like '%-automation-step/%'`;
  await db.query(end);
  await reached('succeeded', 'succeeded', 'succeeded');
  // A later redemption comes behind all that the rebuild could start.
  expect((await redeem('second')).status).toBe(200);
  await reached('succeeded', 'succeeded', 'succeeded', 'succeeded', 'waiting', 'waiting');
  await db.query(end);
  await reached(...Array<string>(6).fill('succeeded'));
  expect(cloud.sent.slice(before).map(({ body }) => body['content'])).toEqual(['A hug', 'A hug']);
  expect(await db.query(`select value from automation_variables where name = 'hugs'`)).toEqual([{ value: '2' }]);
});
