import { memberAt, parsedJson } from '../../../lib/json/paths';
import type { Json } from '../../../lib/json/json';
import { ERASED_RAW } from '../../common/records';
import { eventUserId } from '../../events/event-users';
import { type DrawnEvent, drawnEvent } from '../../studio/drawn-events';
import type { TemplateValues } from './expand';

/** An event, or a message of a channel, as templates read it. */
export interface TemplateEvent {
  /** Null of a message. */
  id: string | null;
  type: string;
  platform: string;
  /** JSON text. */
  raw: string;
  created_at: string;
}

/** Ends of the types of a group. A `youtube:subscribe` is a video. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  sub: [
    ...['subscribe', 'subscriber', 'resub', 'gift', 'gift_sub', 'gift_upgrade', 'prime_upgrade', 'pay_it_forward'],
    ...['member', 'gift_membership', 'gift_membership_received'],
  ],
  tip: ['tip', 'superchat', 'supersticker'],
  cheer: ['cheer', 'spell'],
  raid: ['raid'],
  redemption: ['reward'],
  hype_train: ['hype_train', 'hype_train_end'],
  poll: ['poll', 'poll_end', 'poll_delete'],
  prediction: ['prediction', 'prediction_lock', 'prediction_end'],
};
const RECIPIENTS = [
  ['sub_gift', 'recipient_user_name'],
  ['pay_it_forward', 'recipient_user_name'],
];

/** Values of the groups that an event fills. */
export function eventValues(event: TemplateEvent): TemplateValues {
  const { id, type, platform, raw, created_at } = event;
  const payload = raw === ERASED_RAW ? null : parsedJson(raw);
  const drawn = drawnEvent({ type, platform, payload, created_at });
  const [prefix, suffix] = [type.slice(0, type.indexOf(':')), type.slice(type.indexOf(':') + 1)];
  const [group] = Object.entries(TYPES).find(([, suffixes]) => suffixes.includes(suffix)) ?? [];
  const own =
    drawn === null || group === undefined || type === 'youtube:subscribe'
      ? {}
      : { [group]: groupValues(group, drawn, payload) };
  return {
    event: { id, type, platform, createdAt: created_at, raw: payload },
    ...userValues(event, drawn),
    ...own,
    ...(prefix === 'shopify' && drawn !== null && { shopify: shopValues(drawn, payload) }),
    ...(prefix === 'obs' && { obs: { type, data: payload } }),
  };
}

function userValues({ platform, raw }: TemplateEvent, drawn: DrawnEvent | null): TemplateValues {
  const [id, name] = [eventUserId(platform, raw), drawn?.user_name ?? null];
  return id === null && name === null ? {} : { user: { id, name, displayName: name, platform } };
}

const shopValues = ({ title, amount, currency }: DrawnEvent, payload: Json): TemplateValues => ({
  ...{ id: memberAt(payload, ['id']) ?? null, title, total: amount, currency },
});

function groupValues(group: string, drawn: DrawnEvent, payload: Json): TemplateValues {
  const at = (...path: string[]) => memberAt(payload, path) ?? null;
  const { user_name: userName, message, amount, currency, count, months, tier, title } = drawn;
  switch (group) {
    case 'sub': {
      const recipients = RECIPIENTS.map((path) => at(...path)).filter((name) => name !== null);
      const recipientName = recipients[0] ?? null;
      return { userName, tier, months, count, message, isGift: count !== null, recipientName };
    }
    case 'tip':
      return { userName, amount, currency, message };
    case 'cheer':
      return { userName, bits: amount, message };
    case 'raid':
      return { userName, viewerCount: count };
    case 'redemption': {
      const reward = { rewardId: at('reward', 'id'), rewardTitle: title, rewardCost: at('reward', 'cost') };
      return { id: at('id'), userName, ...reward, input: at('user_input'), status: at('status') };
    }
    case 'hype_train':
      return { level: at('level'), total: at('total'), progress: at('progress'), goal: at('goal') };
    case 'poll':
      return { id: at('id'), title, status: at('status'), winner: winnerOf(at('choices')) };
    default:
      return { id: at('id'), title, status: at('status'), winner: outcomeOf(payload) };
  }
}

/** Title of the choice with most votes; null without votes. */
function winnerOf(choices: Json): Json {
  if (!Array.isArray(choices)) return null;
  const votes = (choice: Json) => Number(memberAt(choice, ['votes']) ?? 0);
  const first = choices.reduce((best, choice) => (votes(choice) > votes(best) ? choice : best), choices[0] ?? null);
  return votes(first) > 0 ? (memberAt(first, ['title']) ?? null) : null;
}

/** Title of the outcome that won. */
function outcomeOf(payload: Json): Json {
  const id = memberAt(payload, ['winning_outcome_id']);
  const outcomes = memberAt(payload, ['outcomes']);
  if (!Array.isArray(outcomes) || typeof id !== 'string') return null;
  return (
    memberAt(
      outcomes.find((one) => memberAt(one, ['id']) === id),
      ['title'],
    ) ?? null
  );
}

/** Values of the time, in UTC. */
export function timeValues(now_ms: number): TemplateValues {
  const now = new Date(now_ms);
  const text = now.toISOString();
  const weekday = now.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
  return {
    ...{ now: text, date: text.slice(0, 10), time: text.slice(11, 16), weekday, unix: Math.floor(now_ms / 1000) },
  };
}
