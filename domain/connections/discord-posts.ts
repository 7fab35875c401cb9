import { z } from 'zod';
import { memberAt, parsedJson } from '../../lib/json/paths';
import { ERASED_RAW } from '../common/records';
import { cutTo } from '../automation/expansion';
import { DISCORD_FEATURES, type DiscordFeature } from './discord-guilds';

/** Name of the job. */
export const POST_TO_DISCORD = 'post-to-discord';
/** Age from which nothing is posted about an event or a line, in milliseconds. */
export const POST_MS = 5 * 60_000;
/** Most characters (code points) of a message in Discord. */
export const MAX_POST_CHARACTERS = 2_000;

/** Owner of the waiting posts of a use of a server. */
export const postOwner = (connection_id: string, feature: DiscordFeature): string =>
  `discord:${connection_id}:${feature}`;

/** A post, as its job carries it. Members about the person are sealed under the person's key. */
export const DiscordPost = {
  account_id: z.uuid(),
  connection_id: z.uuid(),
  feature: z.enum(DISCORD_FEATURES),
  /** Id of the cause. */
  cause_id: z.uuid(),
  platform: z.string(),
  /** Type of the event. */
  type: z.string(),
  channel_id: z.string().nullable(),
  broadcast_id: z.string().nullable(),
  title: z.string().nullable(),
  category: z.string().nullable(),
  platform_user_id: z.string().nullable(),
  name: z.string().nullable(),
  text: z.string().nullable(),
};
export type DiscordPost = z.output<z.ZodObject<typeof DiscordPost>>;

const subjectOf = ({ platform, platform_user_id }: Record<string, unknown>): string | null =>
  typeof platform_user_id === 'string' ? `${String(platform)}:${platform_user_id}` : null;
/** Members about the person, and whose they are. */
export const PERSONAL = { platform_user_id: subjectOf, name: subjectOf, text: subjectOf };

/** RFC 3339: after it, nothing is posted. */
export const postExpiry = (at_ms: number): string => new Date(at_ms + POST_MS).toISOString();

/** Places of a person's name in the payloads of vendors; the first that is there counts. */
const NAMES: readonly (readonly string[])[] = [
  'event.user_name',
  'event.chatter_user_name',
  'event.from_broadcaster_user_name',
  'chatter_user_name',
  'from_broadcaster_user_name',
  'user_name',
  'authorDetails.displayName',
  'snippet.superChatDetails.displayName',
  'follower.username',
  'subscriber.username',
  'gifter.username',
  'redeemer.username',
  'sender.username',
  'banned_user.username',
  'nick_name',
  'data.nick_name',
  'donation.user.username',
  'data.username',
  'user.global_name',
  'user.username',
  'd.user.username',
  'customer.first_name',
  'display_name',
  'username',
].map((path) => path.split('.'));

/** Name of the person whom an event is about; null where its payload has none. */
export function personName(raw: string): string | null {
  if (raw === ERASED_RAW) return null;
  const value = parsedJson(raw);
  for (const path of NAMES) {
    const name = memberAt(value, path);
    if (typeof name === 'string' && name.trim() !== '') return cutTo(name.trim(), 100);
  }
  return null;
}

const MARKS = /[\\*_~`|<>[\]()#@:-]/g;
/** A name as it is written: without a meaning for Discord. */
export const plainName = (name: string): string => name.replace(/\s+/gu, ' ').replace(MARKS, '\\$&');

/** Text about an event: its person and its type in words. */
export function feedText({ name, platform, type }: Pick<DiscordPost, 'name' | 'platform' | 'type'>): string {
  const action = type.slice(type.indexOf(':') + 1).replaceAll('_', ' ');
  const who = name === null ? '' : `**${plainName(name)}** · `;
  return cutTo(`${who}${plainName(action)} (${plainName(platform)})`, MAX_POST_CHARACTERS);
}

/** Text of a line of a chat with its author. */
export const mirrorText = ({ name, platform, text }: Pick<DiscordPost, 'name' | 'platform' | 'text'>): string =>
  cutTo(`**${plainName(name ?? platform)}** (${platform}): ${text ?? ''}`, MAX_POST_CHARACTERS);

/** Template of a begun broadcast, where the settings have none. */
export const LIVE_MESSAGE = '{{channel}} is live on {{platform}}: {{title}}';
