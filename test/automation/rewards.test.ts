import { randomUUID } from 'node:crypto';
import { rewards, type RewardEvent } from '../../domain/automation/rewards';
import { ownerAndStranger, sharedServer } from '../support/shared-server';
import { decider } from '../support/decider';
import type { ApiClient } from '../support/vendor-cloud';

describe('a reward', () => {
  const given = decider(rewards);
  const ids = { reward_id: 'r', account_id: 'a' };
  const made = {
    platform: 'twitch',
    platform_reward_id: null,
    title: 'Hug',
    cost: 5,
    enabled: true,
    action: '{}',
  } as const;
  const created: RewardEvent = { type: 'reward:created', ...ids, ...made, created_at: 'then' };

  test('keeps absent members, and changes nothing without a change', () => {
    const update = { type: 'reward:update', ...ids, now: 'now' } as const;
    given([created])
      .when({ ...update, changes: { cost: null } })
      .then({
        type: 'reward:updated',
        ...ids,
        title: 'Hug',
        cost: null,
        enabled: true,
        action: '{}',
        updated_at: 'now',
      });
    given([created])
      .when({ ...update, changes: { title: 'Hug' } })
      .thenNothing();
    given([])
      .when({ ...update, changes: {} })
      .thenFails('REWARD_NOT_FOUND');
  });

  test('is one of at most 1,000', () => {
    const all = Array.from({ length: 1_000 }, (_, n) => ({ ...created, reward_id: String(n) }));
    given(all)
      .when({ type: 'reward:create', ...ids, ...made, now: 'now' })
      .thenFails('TOO_MANY_REWARDS');
  });
});

test('rewards are made, listed, changed and deleted on both protocols, by their account alone', async () => {
  const { owner, stranger } = await ownerAndStranger(await sharedServer());
  const post = (body: object) => owner.send('POST', '/v1/rewards', { platform: 'twitch', title: 'Hug', ...body });
  for (const body of [
    { platform: 'discord' },
    { title: ' ' },
    { title: 'x'.repeat(201) },
    { cost: -1 },
    { cost: 0.5 },
    { action: { automation_id: 'x' } },
    { action: { type: 'action:wait' } },
    { action: { type: 'action:wait', config: { seconds: 0 } } },
    { action: { type: 'action:none', config: {} } },
    { action: { type: 'trigger:manual', config: {} } },
    { action: { type: 'condition:live', config: {} } },
    { action: { type: 'action:run_automation', config: { automation_id: randomUUID() } } },
    { action: { type: 'action:emit_event', config: { event_type: 'a:b', raw: { text: 'x'.repeat(65_536) } } } },
    { action: { type: 'action:send_webhook', config: { url: 'https://example.com/' } } },
    { unknown: 1 },
  ])
    expect(await post(body)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  const made = await post({ cost: 0, platform_reward_id: 'p-1', action: {} });
  const { id } = made.body.data;
  expect(made).toMatchObject({
    status: 201,
    body: { data: { platform: 'twitch', platform_reward_id: 'p-1', title: 'Hug', cost: 0, enabled: true, action: {} } },
  });
  const second = await owner.gql(
    'mutation { createReward(input: { platform: "kick", title: "Song" }) { id cost enabled action platformRewardId } }',
  );
  expect(second.data.createReward).toMatchObject({ cost: null, enabled: true, action: {}, platformRewardId: null });
  expect((await owner.get('/v1/rewards')).body.data.map((one: { title: string }) => one.title)).toEqual([
    'Hug',
    'Song',
  ]);
  expect((await owner.send('PATCH', `/v1/rewards/${id}`, { enabled: false, cost: null })).body.data).toMatchObject({
    ...{ id, title: 'Hug', cost: null, enabled: false },
  });
  expect((await owner.get(`/v1/rewards/${id}`)).body.data).toMatchObject({ enabled: false, action: {} });
  const hug = { type: 'action:send_chat_message', config: { message: 'Hug {{displayName}}' } };
  const acting = await owner.send('PATCH', `/v1/rewards/${id}`, { action: { ...hug, x: 1, y: 2 } });
  expect(acting.body.data).toMatchObject({ enabled: false, action: hug });
  expect((await owner.get(`/v1/rewards/${id}`)).body.data.action).toEqual(hug);
  expect((await owner.send('PATCH', `/v1/rewards/${id}`, { title: 'Hug' })).body.data.action).toEqual(hug);
  expect((await owner.send('PATCH', `/v1/rewards/${id}`, { action: {} })).body.data.action).toEqual({});
  expect((await stranger.get('/v1/rewards')).body._meta.total).toBe(0);
  expect((await stranger.get(`/v1/rewards/${id}`)).status).toBe(404);
  expect((await stranger.send('PATCH', `/v1/rewards/${id}`, { title: 'x' })).status).toBe(404);
  const remove = async (api: ApiClient) => (await api.send('DELETE', `/v1/rewards/${id}`, undefined)).status;
  expect([await remove(stranger), await remove(owner), await remove(owner)]).toEqual([404, 204, 404]);
  const gone = await owner.gql(`mutation { deleteReward(id: "${second.data.createReward.id}") { success } }`);
  expect(gone.data.deleteReward).toEqual({ success: true });
});
