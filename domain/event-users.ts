import { ERASED_RAW } from './records';

/**
 * Where each vendor's payloads name the person an event is about; the first that is there wins. A top-level `user_id`
 * is looked at before these.
 */
const PATHS: Readonly<Record<string, readonly string[]>> = {
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
  streamelements: ['donation.user.channel', 'data.providerId', 'providerId'],
  discord: ['user.id', 'd.user.id'],
};
const MAX_LENGTH = 128;

/**
 * The vendor's id of the person an event is about, as the events filter `userId` matches it (spec doc2 §4.3: the raw
 * `user_id`), or null. Ids that are JSON numbers keep every digit. Pure; never throws, whatever `raw` holds.
 */
export function eventUserId(platform: string, raw: string): string | null {
  if (raw === ERASED_RAW) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(raw);
  } catch {
    return null;
  }
  const own = userAt(parsed, raw, 'user_id');
  if (own !== null) return own;
  for (const path of PATHS[platform] ?? []) {
    const found = userAt(parsed, raw, path);
    if (found !== null) return found;
  }
  return null;
}

function userAt(parsed: unknown, raw: string, path: string): string | null {
  const names = path.split('.');
  let value = parsed;
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  let id: string | undefined;
  if (typeof value === 'string') id = value.replaceAll('\0', '\ufffd');
  else if (typeof value === 'number') id = Number.isSafeInteger(value) ? String(value) : numberText(raw, names);
  return id === undefined || id === '' || id.length > MAX_LENGTH ? null : id;
}

/**
 * The text of the member at `names`, found by walking the JSON text: `JSON.parse` has already rounded a number beyond
 * 2^53.
 */
function numberText(json: string, names: readonly string[]): string | undefined {
  let start = 0;
  for (const name of names) {
    const next = memberStart(json, start, name);
    if (next === undefined) return undefined;
    start = next;
  }
  return /^\s*(-?\d+)(?![\d.eE])/.exec(json.slice(start, start + MAX_LENGTH + 8))?.[1];
}

/**
 * Index after the colon of the last member `name` (as `JSON.parse` keeps the last) of the object that begins at or
 * after `from`.
 */
function memberStart(json: string, from: number, name: string): number | undefined {
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;
  token.lastIndex = from;
  let depth = 0;
  let found: number | undefined;
  let key: string | undefined;
  let expectKey = false;
  for (let match = token.exec(json); match; match = token.exec(json)) {
    const text = match[0];
    if (text === '{' || text === '[') {
      depth += 1;
      expectKey = depth === 1 && text === '{';
    } else if (text === '}' || text === ']') {
      depth -= 1;
      if (depth <= 0) return found;
    } else if (depth !== 1) continue;
    else if (text === ',') expectKey = true;
    else if (text === ':') {
      if (key === name) found = token.lastIndex;
      expectKey = false;
    } else if (expectKey) key = JSON.parse(text) as string;
  }
  return found;
}
