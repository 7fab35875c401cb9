import { v5, v7 as uuid } from 'uuid';
import { emittedId } from '../../domain/events/emitted';
import {
  addCounts,
  bombRecipients,
  type EventFigure,
  noCounts,
  readCounts,
} from '../../domain/history/session-figures';
import type { LoggedRecord } from '../../engines/records/port';
import { lateSpans } from '../../services/history/late-records';
import { fixture } from '../support/webhooks';

const twitch = (name: string) => fixture('twitch', `channel.chat.notification.${name}.event.json`).toString();
const count = (type: string, ...raws: string[]) => {
  const counts = noCounts(type.slice(0, type.indexOf(':')));
  const bombs = new Map();
  for (const raw of raws) addCounts(counts, bombs, readCounts(type, raw));
  if (counts.gifted_subs !== null) counts.gifted_subs += bombRecipients(bombs);
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== 0 && value !== null));
};

test.each<[string, string, Partial<Record<EventFigure, number>>]>([
  ['a gift bomb is its total', twitch('community_sub_gift_whole'), { gifted_subs: 5 }],
  ['a bomb without its total is its single gifts', twitch('sub_gift_of_community.partial'), { gifted_subs: 1 }],
  ['a single gift of none is one', twitch('sub_gift_whole'), { gifted_subs: 1 }],
  ['another room of a shared chat counts nothing', twitch('shared_chat_community_sub_gift'), {}],
  ['nor does a gift there', twitch('shared_chat_sub_gift'), {}],
  ['text that is no JSON counts nothing', '"[erased]"', {}],
])('twitch:gift: %s', (_what, raw, figures) => {
  expect(count('twitch:gift', raw)).toEqual(figures);
});

test('twitch: of a gift bomb the larger of total and single gifts counts, in any order', () => {
  const whole = (total: number) => JSON.stringify({ community_sub_gift: { id: 'c', total } });
  const single = JSON.stringify({ sub_gift: { community_gift_id: 'c' } });
  expect(count('twitch:gift', single, whole(3), single)).toEqual({ gifted_subs: 3 });
  expect(count('twitch:gift', whole(1), single, whole(1), single)).toEqual({ gifted_subs: 2 });
});

test('twitch: upgrades from gift and Prime are paid subscriptions, renewals are not', () => {
  const upgraded = { new_paid_subs: 1, sub_upgrades: 1 };
  expect(count('twitch:gift_upgrade', '{}')).toEqual(upgraded);
  expect(count('twitch:prime_upgrade', '{}')).toEqual(upgraded);
  expect(count('twitch:resub', '{}')).toEqual({ resubs: 1 });
});

test('kick: the first month is new, a later one a renewal; each giftee counts', () => {
  const kick = (name: string) => fixture('kick', `channel.${name}.json`).toString();
  expect(count('kick:subscribe', kick('subscription.new'), kick('subscription.renewal'))).toEqual({
    new_paid_subs: 1,
    resubs: 1,
  });
  expect(count('kick:subscribe', '{}')).toEqual({});
  const { giftees } = JSON.parse(kick('subscription.gifts'));
  expect(count('kick:gift', kick('subscription.gifts'), kick('subscription.gifts.anonymous'))).toEqual({
    gifted_subs: giftees.length + JSON.parse(kick('subscription.gifts.anonymous')).giftees.length,
  });
});

test('trovo: gifts, and raids whose size stands in a text', () => {
  const trovo = (name: string) => fixture('trovo', `chat.item.${name}.json`).toString();
  expect(
    count('trovo:subscribe', trovo('subscription_5001'), trovo('gift_sub_5005'), trovo('gift_sub_to_one_5006')),
  ).toEqual({ new_paid_subs: 1, gifted_subs: 2 });
  expect(count('trovo:raid', trovo('raid_5008'))).toEqual({ raids: 1, raid_viewers: 96 });
});

test('youtube: new, upgraded and renewed memberships, and gifts by their count', () => {
  const member = (snippet: object) => JSON.stringify({ snippet });
  expect(
    count(
      'youtube:member',
      member({ newSponsorDetails: { isUpgrade: false } }),
      member({ newSponsorDetails: { isUpgrade: true } }),
      member({ memberMilestoneChatDetails: { memberMonth: 3 } }),
    ),
  ).toEqual({ new_paid_subs: 1, sub_upgrades: 1, resubs: 1 });
  const gift = member({ membershipGiftingDetails: { giftMembershipsCount: 50 } });
  expect(count('youtube:gift_membership', gift)).toEqual({ gifted_subs: 50 });
});

test('figures that a platform does not report are null, the others 0', () => {
  expect(noCounts('youtube')).toMatchObject({ new_followers: null, new_paid_subs: 0, bits: null, raids: null });
  expect(noCounts('twitch')).toMatchObject({ new_followers: 0, bits: 0, raids: 0 });
});

describe('times of late records', () => {
  const NOW = Date.parse('2026-05-20T12:00:00Z');
  const account_id = uuid();
  const follower = (occurred_at: string, more = {}) =>
    ({ id: uuid(), account_id, type: 'kick:follower', occurred_at, ...more }) as LoggedRecord;
  const spansOf = (...records: LoggedRecord[]) => lateSpans('event-log', records, 300_000, NOW);

  test('are the days of the records, not the time between them', () => {
    const spans = spansOf(
      follower('2025-06-01T10:00:00Z'),
      follower('2026-05-20T11:00:00Z'),
      follower('2025-06-01T09:00:00Z'),
      follower('2026-05-20T11:58:00Z'),
    );
    expect(spans).toEqual([
      { account_id, since: '2025-06-01T09:00:00.000000Z', until: '2025-06-01T10:00:00.000000Z' },
      { account_id, since: '2026-05-20T11:00:00.000000Z', until: '2026-05-20T11:00:00.000000Z' },
    ]);
  });

  test('leave out events that the account emitted itself, which count in no session', () => {
    const at = '2026-05-20T09:00:00Z';
    expect(spansOf(follower(at, { id: emittedId() }), follower(at, { id: v5('seed', account_id) }))).toEqual([]);
    expect(spansOf(follower(at))).toHaveLength(1);
  });

  test('begin at half the grace, so that a finished session has counted all other records', () => {
    const at = '2026-05-20T11:59:00Z';
    expect(spansOf(follower(at))).toEqual([]);
    expect(lateSpans('chat-live', [follower(at)], 60_000, NOW)).toHaveLength(1);
  });
});
