import { randomInt } from 'node:crypto';
import { argumentValues, cutTo, expand, uptimeText } from '../../domain/automation/expansion';
import type { BotPlatform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { grantNames } from '../connections/connection-grants';
import { readChannelName } from '../connections/channel-names';
import { accountFlags } from './account-flags';
import { maskOf } from './modules/masks';

/** Subject of the values of a text; a text without a line has no user, arguments and count. */
export interface TextSubject {
  account_id: string;
  platform: BotPlatform;
  /** A channel in Discord names no channel of the account. */
  channel_id: string;
  user?: string | null;
  args?: string | null;
  count?: number;
}

interface TextServices {
  db: Queryable;
  texts: PersonalTexts;
}

/** The template with its values, in which filtered words are masked; at most as long as the platform allows. */
export async function expandedText(
  services: TextServices,
  template: string,
  { account_id, platform, channel_id, ...line }: TextSubject,
  most_characters: number,
): Promise<string> {
  const mask = await maskOf(services.db, account_id);
  const user = mask(line.user ?? '');
  const values = {
    ...{
      user,
      platform,
      count: line.count === undefined ? '' : String(line.count),
      ...argumentValues(mask(line.args ?? ''), user),
    },
    channel: mask(await channelOf(services, { account_id, platform, channel_id })),
    uptime: await uptimeOf(services.db, account_id, platform),
    song: template.includes('{{song}}') ? mask(await songOf(services.db, account_id)) : '',
  };
  return cutTo(expand(template, values, randomInt).trim(), most_characters);
}

/** Name of the channel; in Discord that of the account's server. */
async function channelOf(services: TextServices, { account_id, platform, channel_id }: TextSubject): Promise<string> {
  if (platform === 'discord') return guildName(services, account_id);
  return (await readChannelName(services, { platform, platform_channel_id: channel_id })) ?? '';
}

/** Name of the account's Discord server. */
async function guildName(services: TextServices, account_id: string): Promise<string> {
  const [row] = await services.db.query<{ id: string }>(
    `select id from bot_connections where account_id = $1 and platform = 'discord'`,
    [account_id],
    'bot-guild',
  );
  if (row === undefined) return '';
  return (await grantNames(services, [row.id])).get(row.id)?.display_name ?? '';
}

/** Empty while the channel is not on air; in Discord while no channel of the account is. */
async function uptimeOf(db: Queryable, account_id: string, platform: BotPlatform): Promise<string> {
  const [row] = await db.query<{ ms: number | null }>(
    `select (extract(epoch from clock_timestamp() - min(started_at)) * 1000)::float8 as ms from channel_status
     where account_id = $1 and ($2 = 'discord' or platform = $2) and is_online`,
    [account_id, platform],
    'bot-uptime',
  );
  return row?.ms === null || row === undefined ? '' : uptimeText(row.ms);
}

const NOW_PLAYING = 'widget:spotify_now_playing';
/** Hours after which the state of a player is unknown. */
const SONG_HOURS = 12;

/** The song that the account plays; empty without `widget:spotify_now_playing`. */
async function songOf(db: Queryable, account_id: string): Promise<string> {
  const isOn = await accountFlags(db, [account_id], [NOW_PLAYING]);
  if (!isOn(NOW_PLAYING, account_id)) return '';
  const [row] = await db.query<{ name: string | null; artists: string | null; is_playing: boolean | null }>(
    `select e.raw #>> '{item,name}' as name, (e.raw ->> 'is_playing')::boolean as is_playing,
       (select string_agg(a ->> 'name', ', ') from json_array_elements(
         case json_typeof(e.raw #> '{item,artists}') when 'array' then e.raw #> '{item,artists}' else '[]' end) a)
         as artists
     from platform_event_logs e
     where e.account_id = $1 and e.type in ('spotify:track', 'spotify:play', 'spotify:pause', 'spotify:skip')
       and e.created_at > now() - make_interval(hours => ${SONG_HOURS})
     order by e.created_at desc limit 1`,
    [account_id],
    'bot-song',
  );
  if (row === undefined || row.is_playing !== true || row.name === null) return '';
  return row.artists === null ? row.name : `${row.artists} - ${row.name}`;
}
