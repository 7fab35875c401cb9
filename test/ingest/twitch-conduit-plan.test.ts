import { CallBudget } from '../../ingest/twitch/call-budget';
import { ChannelPlan } from '../../ingest/twitch/conduit/plan';
import type { KeptSubscription } from '../../ingest/twitch/conduit/store';
import { SUBSCRIPTIONS } from '../../ingest/twitch/subscriptions';

const AT = '2026-11-25T10:00:00.000000500Z';
const FIRST_LOGIN = '2026-11-01T00:00:00Z';

const row = (name: string, others: Partial<KeptSubscription>): KeptSubscription => ({
  ...{ channel_id: '1', name, subscription_id: null, since: null, refused: null, consent: null },
  ...others,
});
const made = (name: string, since = AT) => row(name, { subscription_id: `id of ${name}`, since });
const refused = (name: string, consent = FIRST_LOGIN) => row(name, { refused: 'missing authorization', consent });

/** Asks for everything in its order; `refuses` says what Twitch refuses. */
function askedFor(plan: ChannelPlan, refuses: (name: string) => boolean = () => false): string[] {
  const asked: string[] = [];
  for (let next = plan.next(); next !== undefined; next = plan.next()) {
    asked.push(next.name);
    plan.note(refuses(next.name) ? refused(next.name) : made(next.name));
  }
  return asked;
}
const onSocket = (plan: ChannelPlan) => plan.onSocket().map(({ name }) => name);
const planOf = (kept: KeptSubscription[] = [], since = FIRST_LOGIN) => new ChannelPlan({ since }, kept);

describe('what of a Twitch channel is received over the conduit', () => {
  test('everything but what channel.moderate reports as well', () => {
    const plan = planOf();
    expect(onSocket(plan)).toHaveLength(SUBSCRIPTIONS.length);
    const asked = askedFor(plan);
    expect(asked).toHaveLength(SUBSCRIPTIONS.length - 3);
    expect(asked).not.toContain('channel.ban');
    expect(onSocket(plan)).toEqual([]);
    expect(plan.receives('channel.ban', '2026-11-25T10:00:01Z')).toBe(true);
  });

  test('the types of their own where channel.moderate is refused', () => {
    const plan = planOf();
    expect(askedFor(plan, (name) => name === 'channel.moderate')).toContain('channel.chat.message_delete');
    expect(onSocket(plan)).toEqual([]);
    expect(plan.refused()).toEqual([{ type: 'channel.moderate', message: 'missing authorization' }]);
  });

  test('no chat and no moderation without the consent to read the chat', () => {
    const plan = planOf();
    const asked = askedFor(plan, (name) => name === 'channel.chat.message');
    expect(asked).not.toContain('channel.moderate');
    expect(onSocket(plan)).toContain('channel.chat.message');
    expect(onSocket(plan)).toHaveLength(8);
    expect(plan.refused()).toEqual([]);
  });

  test('what was refused is asked for again when the owner has logged in again', () => {
    const kept = [refused('channel.chat.message'), refused('channel.follow')];
    expect(askedFor(planOf(kept))).not.toContain('channel.follow');
    expect(askedFor(planOf(kept, '2026-11-20T00:00:00Z'))).toEqual(
      expect.arrayContaining(['channel.follow', 'channel.chat.message', 'channel.moderate']),
    );
  });

  test('from the moment of its subscription on, to the nanosecond', () => {
    const plan = planOf([made('channel.cheer')]);
    expect(plan.receives('channel.cheer', '2026-11-25T10:00:00.000000499Z')).toBe(false);
    expect(plan.receives('channel.cheer', '2026-11-25T10:00:00.000000501Z')).toBe(true);
    expect(plan.receives('channel.follow', '2026-11-25T10:00:00.000000501Z')).toBe(false);
  });

  test('both directions of raids, or none', () => {
    const plan = planOf([made('channel.raid:to')]);
    expect(plan.since()).toEqual({});
    plan.note(made('channel.raid:from', '2026-11-25T11:00:00Z'));
    expect(plan.since()).toEqual({
      'channel.raid': '2026-11-25T11:00:00Z',
      'channel.raid:to': AT,
      'channel.raid:from': '2026-11-25T11:00:00Z',
    });
    plan.note(row('channel.raid:to', {}));
    expect(onSocket(plan)).toContain('channel.raid:to');
  });
});

describe('calls of an app wait for its bucket', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test.each([
    ['that is over by our clock', -3_600_000],
    ['that is far by our clock', 3_600_000],
  ])('until a moment %s, at least shortly and about a minute at most', (_what, ms) => {
    const budget = new CallBudget({ at_once: 4, reserve: 100 });
    budget.note({ calls: 100, full_at: Date.now() + ms });
    expect(budget.isEmpty).toBe(false);
    budget.note({ calls: 99, full_at: Date.now() + ms });
    expect(budget.isEmpty).toBe(true);
    jest.advanceTimersByTime(65_000);
    expect(budget.isEmpty).toBe(false);
    budget.limited(Date.now() + ms);
    expect(budget.isEmpty).toBe(true);
  });
});
