import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { FakeChatCloud } from '../vendors/chat-cloud';

const WEB = 'https://app.example';

let cloud: FakeChatCloud;
let server: TestServer;
let owner: ApiClient;
let channel: string;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({
    env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  const { body } = await owner.get('/v1/connections/channel');
  channel = body.data.find((one: any) => one.platform === 'twitch').platform_channel_id;
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});
beforeEach(() => {
  cloud.acts.length = 0;
});

async function connectChannel(): Promise<void> {
  const begun = await owner.send('POST', '/v1/connections/oauth/twitch/start', { kind: 'channel', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, channel);
  expect((await owner.send('POST', '/v1/connections/oauth/twitch/exchange', { code, state })).status).toBe(200);
}
const dataOf = ({ status, body }: { status: number; body: any }) => ({ status, body: body.data ?? body });
const call = async (method: 'POST' | 'DELETE', path: string, body?: object) =>
  dataOf(await owner.send(method, `/v1/chat/${path}`, body));
const acted = () => cloud.acts.map(({ owner: by, route, query, body }) => ({ by, route, query, body }));

describe('tools of a Twitch channel', () => {
  beforeAll(connectChannel);

  test('a raid begins and ends by the connection of the channel', async () => {
    const done = { status: 200, body: { success: true, details: null, id: null } };
    expect(await call('POST', 'raid', { platform: 'twitch', target_channel_id: '4711' })).toEqual(done);
    expect(await call('DELETE', 'raid?platform=twitch')).toEqual(done);
    expect(acted()).toEqual([
      {
        by: channel,
        route: 'POST /helix/raids',
        query: { from_broadcaster_id: channel, to_broadcaster_id: '4711' },
        body: {},
      },
      { by: channel, route: 'DELETE /helix/raids', query: { broadcaster_id: channel }, body: {} },
    ]);
  });

  test('a poll is made and ended, and a prediction made, locked and resolved', async () => {
    const poll = { platform: 'twitch', title: 'Next game?', choices: ['Chess', 'Go'], duration_secs: 60 };
    const made = await call('POST', 'polls', poll);
    expect(made).toEqual({ status: 200, body: { success: true, details: null, id: expect.any(String) } });
    const { id } = made.body;
    expect((await call('POST', `polls/${id}/end`, {})).body).toEqual({ success: true, details: null, id });
    expect((await call('POST', `polls/${id}/cancel`, {})).body).toMatchObject({ success: true });
    const bet = { platform: 'twitch', title: 'Win?', outcomes: ['yes', 'no'], window_secs: 30 };
    const { id: bet_id } = (await call('POST', 'predictions', bet)).body;
    expect((await call('POST', `predictions/${bet_id}/lock`, {})).body).toMatchObject({ success: true });
    const resolved = await call('POST', `predictions/${bet_id}/resolve`, { winning_outcome_id: 'o-1' });
    expect(resolved.body).toEqual({ success: true, details: null, id: bet_id });
    const { data } = await owner.gql(`mutation { cancelPrediction(id: "${bet_id}") { success details id } }`);
    expect(data.cancelPrediction).toEqual({ success: true, details: null, id: bet_id });
    const by_channel = { broadcaster_id: channel };
    expect(acted().map(({ route, body }) => [route, body])).toEqual([
      [
        'POST /helix/polls',
        { ...by_channel, title: 'Next game?', choices: [{ title: 'Chess' }, { title: 'Go' }], duration: 60 },
      ],
      ['PATCH /helix/polls', { ...by_channel, id, status: 'TERMINATED' }],
      ['PATCH /helix/polls', { ...by_channel, id, status: 'ARCHIVED' }],
      [
        'POST /helix/predictions',
        { ...by_channel, title: 'Win?', outcomes: [{ title: 'yes' }, { title: 'no' }], prediction_window: 30 },
      ],
      ['PATCH /helix/predictions', { ...by_channel, id: bet_id, status: 'LOCKED' }],
      ['PATCH /helix/predictions', { ...by_channel, id: bet_id, status: 'RESOLVED', winning_outcome_id: 'o-1' }],
      ['PATCH /helix/predictions', { ...by_channel, id: bet_id, status: 'CANCELED' }],
    ]);
  });

  test('a person is watched, restricted and left alone again, and the act is in the audit log', async () => {
    for (const user_treatment of ['active_monitoring', 'restricted', 'none'])
      expect(await call('POST', 'user-treatment', { platform: 'twitch', user_id: '66', user_treatment })).toEqual({
        status: 200,
        body: { success: true, details: null, id: null },
      });
    const query = { broadcaster_id: channel, moderator_id: channel };
    const path = '/helix/moderation/suspicious_users';
    expect(acted()).toEqual([
      { by: channel, route: `POST ${path}`, query, body: { user_id: '66', status: 'ACTIVE_MONITORING' } },
      { by: channel, route: `POST ${path}`, query, body: { user_id: '66', status: 'RESTRICTED' } },
      { by: channel, route: `DELETE ${path}`, query: { ...query, user_id: '66' }, body: {} },
    ]);
    await eventually(async () => {
      const { body: log } = await owner.get('/v1/account/audit-log?action=chat:moderated');
      return log.data?.some((one: any) => JSON.stringify(one).includes('"TREATMENT"')) || undefined;
    }, 'the entry of the audit log');
  });

  test('what Twitch refuses or does not answer is success: false, and an unknown id is 404', async () => {
    const raid = { platform: 'twitch', target_channel_id: '4711' };
    cloud.fail({ path: '/helix/raids', status: 409, body: { message: 'Already raiding' } });
    expect(await call('POST', 'raid', raid)).toEqual({
      status: 200,
      body: { success: false, details: 'Already raiding', id: null },
    });
    cloud.fail({ path: '/helix/raids', status: 'cut' });
    expect((await call('POST', 'raid', raid)).body).toMatchObject({
      success: false,
      details: 'The platform did not answer; it is not known what it did',
    });
    cloud.fail({ path: '/helix/polls', status: 404, body: { message: 'no such poll' } });
    expect(await call('POST', 'polls/foreign/end', {})).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });
    // A scope that the connection lacks: a new token changes nothing.
    cloud.fail({
      path: '/helix/raids',
      status: 401,
      times: 2,
      body: { message: 'Missing scope: channel:manage:raids' },
    });
    expect((await call('POST', 'raid', raid)).body).toMatchObject({
      success: false,
      details: 'Missing scope: channel:manage:raids',
    });
  });

  test('other platforms have none of them, and bad input is refused before any call', async () => {
    const calls = cloud.calls.length;
    const poll = { platform: 'twitch', title: 'x', choices: ['a', 'b'], duration_secs: 15 };
    const bet = { platform: 'twitch', title: 'x', outcomes: ['a', 'b'], window_secs: 30 };
    for (const [path, body, error] of [
      ['raid', { platform: 'kick', target_channel_id: '1' }, 'BAD_REQUEST'],
      ['user-treatment', { platform: 'youtube', user_id: '1', user_treatment: 'none' }, 'BAD_REQUEST'],
      ['polls', { ...poll, platform: 'trovo' }, 'BAD_REQUEST'],
      ['polls', { ...poll, title: 'x'.repeat(61) }, 'VALIDATION_ERROR'],
      ['polls', { ...poll, choices: ['a'] }, 'VALIDATION_ERROR'],
      ['polls', { ...poll, choices: ['a', 'x'.repeat(26)] }, 'VALIDATION_ERROR'],
      ['polls', { ...poll, duration_secs: 14 }, 'VALIDATION_ERROR'],
      ['predictions', { ...bet, outcomes: Array.from({ length: 11 }, () => 'a') }, 'VALIDATION_ERROR'],
      ['predictions', { ...bet, title: 'x'.repeat(46) }, 'VALIDATION_ERROR'],
      ['predictions', { ...bet, window_secs: 1_801 }, 'VALIDATION_ERROR'],
      ['raid', { platform: 'none', target_channel_id: '1' }, 'VALIDATION_ERROR'],
    ] as const)
      expect([path, await call('POST', path, body)]).toMatchObject([path, { status: 400, body: { error } }]);
    expect(cloud.calls.length).toBe(calls);
    const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
    const raid = { platform: 'twitch', target_channel_id: '1' };
    expect((await stranger.send('POST', '/v1/chat/raid', raid)).status).toBe(404);
  });
});
