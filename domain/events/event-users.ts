import { digitsAt } from '../../lib/json/digits';
import { memberAt } from '../../lib/json/paths';
import { ERASED_RAW } from '../common/records';

/**
 * Where each vendor's payloads name the person an event is about; the first that is there wins. A top-level `user_id`
 * is looked at before these.
 */
const PATHS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    twitch: [
      'chatter_user_id',
      'event.user_id',
      'event.chatter_user_id',
      'from_broadcaster_user_id',
      'event.from_broadcaster_user_id',
    ],
    youtube: ['authorDetails.channelId', 'snippet.authorChannelId'],
    kick: [
      'follower.user_id',
      'subscriber.user_id',
      'gifter.user_id',
      'redeemer.user_id',
      'sender.user_id',
      'banned_user.user_id',
    ],
    trovo: ['sender_id', 'uid', 'data.sender_id'],
    shopify: ['customer.id'],
    streamelements: ['donation.user.channel', 'data.providerId', 'providerId', 'donation.user.username'],
    discord: ['user.id', 'd.user.id'],
  }),
);
/**
 * Member with the owner's channel. StreamElements also writes it in the giver's place where it knows the giver by name
 * alone.
 */
const OWNERS: ReadonlyMap<string, string> = new Map([['streamelements', 'channel']]);
const MAX_LENGTH = 128;
/** As JSON writes the names that a person's id stands under: `user_id`, and the last ones of a platform's paths. */
const QUOTED: ReadonlyMap<string, readonly string[]> = new Map(
  [...PATHS].map(([platform, paths]) => [platform, quoted(['user_id', ...paths])]),
);
const QUOTED_ELSEWHERE = quoted(['user_id']);

/**
 * The vendor's id of the person an event is about, as the events filter `userId` matches it (spec doc2 §4.3: the raw
 * `user_id`), or null. Ids that are JSON numbers keep every digit. Pure; never throws, whatever `raw` holds.
 */
export function eventUserId(platform: string, raw: string): string | null {
  if (raw === ERASED_RAW || !mayName(platform, raw)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(raw);
  } catch {
    return null;
  }
  const own = userAt(parsed, raw, 'user_id');
  if (own !== null) return own;
  const owner_path = OWNERS.get(platform);
  const owner = owner_path === undefined ? null : userAt(parsed, raw, owner_path);
  for (const path of PATHS.get(platform) ?? []) {
    const found = userAt(parsed, raw, path);
    if (found !== null && found !== owner) return found;
  }
  return null;
}

function quoted(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => `"${path.slice(path.lastIndexOf('.') + 1)}"`))];
}

/** Whether any of the names occurs: a cheap check before parsing. A name may be written with escapes. */
function mayName(platform: string, raw: string): boolean {
  return raw.includes('\\') || (QUOTED.get(platform) ?? QUOTED_ELSEWHERE).some((name) => raw.includes(name));
}

/** The id at a path like `event.user_id`; null when it is no text and no number, empty, or too long to be one. */
function userAt(parsed: unknown, raw: string, path: string): string | null {
  const names = path.split('.');
  const id = idText(memberAt(parsed, names), () => digitsAt(raw, names));
  return id === undefined || id === '' || id.length > MAX_LENGTH ? null : id;
}

/** `exact` gives the digits of a number that was rounded. */
function idText(value: unknown, exact: () => string | undefined): string | undefined {
  if (typeof value === 'string') return value.replaceAll('\0', '\ufffd');
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : exact();
  return undefined;
}
