import { argumentValues, uptimeText } from '../../../domain/automation/expansion';
import {
  groupOf,
  readableGroups,
  templateNames,
  type TemplateValues,
} from '../../../domain/automation/templates/expand';
import { eventValues, type TemplateEvent, timeValues } from '../../../domain/automation/templates/values';
import type { Queryable } from '../../../engines/postgres/port';
import { parsedJson } from '../../../lib/json/paths';
import { drawnSong } from '../../../domain/studio/drawn-events';
import type { PersonalTexts } from '../../../privacy/subject-keys/port';
import { type ChannelPlatform, PLATFORMS } from '../../../domain/common/vendors';
import { readChannelName } from '../../connections/channel-names';
import { grantNames } from '../../connections/connection-grants';
import { readVariables } from './variables';

/** Cause of a run, as its templates read it. */
export interface TemplateCause {
  account_id: string;
  /** Platform of the cause; null without one. */
  platform: string | null;
  /** The event, the chat line or the message that started the run. */
  event?: TemplateEvent | null;
  /** Author of the cause, where the event does not name one: of a chat line or a command. */
  author?: { id: string | null; name: string | null; role: string | null } | null;
  /** Text after the command that started the run. */
  args?: string | null;
  /** Permissions of the user who runs the automation by hand; null: all groups are read. */
  permissions: ReadonlySet<string> | null;
  /** Milliseconds since 1970. */
  now_ms: number;
}

interface ContextServices {
  db: Pick<Queryable, 'query'>;
  texts: PersonalTexts;
}

/** Hours after which the state of a player is unknown. */
const SONG_HOURS = 12;

/** Values that the templates of a run name; groups that they do not name are not loaded. */
export async function templateContext(
  services: ContextServices,
  cause: TemplateCause,
  templates: readonly string[],
): Promise<TemplateValues> {
  const names = [...new Set(templates.flatMap(templateNames))];
  const named = new Set(names.map(groupOf));
  const { permissions } = cause;
  const allowed = permissions === null ? named : new Set(readableGroups(permissions).filter((one) => named.has(one)));
  const values: Record<string, unknown> = { platform: cause.platform };
  const has = (group: string) => allowed.has(group);
  // Values that the cause has by itself.
  for (const [group, found] of Object.entries(causeValues(cause))) if (has(group)) values[group] = found;
  if (cause.args !== undefined && cause.args !== null)
    Object.assign(values, argumentValues(cause.args, cause.author?.name ?? ''));
  if (has('time')) values.time = timeValues(cause.now_ms);
  if (has('channel')) values.channel = await channelOf(services, cause);
  if (has('stream') || has('channel_status')) {
    const statuses = await statusValues(services.db, cause);
    if (has('stream')) values.stream = statuses.stream;
    if (has('channel_status')) values.channel_status = statuses.channel_status;
  }
  if (has('spotify')) values.spotify = await songOf(services.db, cause.account_id);
  if (has('bot') || has('discord')) {
    const bots = await botValues(services, cause);
    if (has('bot')) values.bot = bots.bot;
    if (has('discord')) values.discord = bots.discord;
  }
  if (has('custom')) values.custom = await variablesOf(services, cause.account_id, names);
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null));
}

function causeValues({ event, author, platform }: TemplateCause): TemplateValues {
  const found = event ? eventValues(event) : {};
  if (!author) return found;
  const { id, name, role } = author;
  return { ...found, user: { id, name, displayName: name, platform, role } };
}

/** The channel of the cause's platform, else the first connected one. */
async function channelOf(services: ContextServices, { account_id, platform }: TemplateCause) {
  const [row] = await services.db.query<{ id: string; platform: ChannelPlatform }>(
    `select platform_channel_id as id, platform from channel_connections where account_id = $1
     order by platform = $2 desc, connected_at, id limit 1`,
    [account_id, platform ?? ''],
    'template-channel',
  );
  if (row === undefined) return null;
  const name = await readChannelName(services, { platform: row.platform, platform_channel_id: row.id });
  return { id: row.id, name, platform: row.platform };
}

interface Status {
  platform: string;
  is_online: boolean;
  title: string | null;
  category: string | null;
  started_at: string | null;
  viewer_count: number | null;
}

async function statusValues(db: Pick<Queryable, 'query'>, { account_id, platform, now_ms }: TemplateCause) {
  const statuses = await db.query<Status & Record<string, unknown>>(
    `select c.platform, s.broadcast_id is not null as is_online, s.started_at, f.viewer_count,
       coalesce(f.stream_title, s.stream_title) as title, coalesce(f.category, s.category) as category
     from channel_connections c
     left join channel_status s on s.account_id = c.account_id and s.platform = c.platform and s.is_online
     left join broadcast_figures f on f.account_id = s.account_id and f.platform = s.platform
       and f.broadcast_id = s.broadcast_id
     where c.account_id = $1 and c.platform = any($2) order by c.platform, s.started_at desc, s.broadcast_id`,
    [account_id, PLATFORMS],
    'template-statuses',
  );
  if (statuses.length === 0) return {};
  const shown = statuses.filter((one) => one.platform === platform);
  const [first] = (shown.length > 0 ? shown : statuses).toSorted((a, b) => Number(b.is_online) - Number(a.is_online));
  const { is_online: isLive, title, category, started_at: startedAt } = first!;
  const uptime = startedAt === null ? null : uptimeText(now_ms - Date.parse(startedAt));
  const by_platform = statuses.toReversed().map((one) => {
    const of = { title: one.title, category: one.category, viewerCount: one.viewer_count };
    return [one.platform, { isOnline: one.is_online, ...of, startedAt: one.started_at }] as const;
  });
  return {
    stream: { isLive, title, category, startedAt, uptime },
    channel_status: Object.fromEntries(by_platform),
  };
}

/** State of the account's player; null when it is unknown. */
async function songOf(db: Pick<Queryable, 'query'>, account_id: string) {
  const [row] = await db.query<{ raw: string }>(
    `select raw::text as raw from platform_event_logs
     where account_id = $1 and type in ('spotify:track', 'spotify:play', 'spotify:pause', 'spotify:skip')
       and created_at > now() - make_interval(hours => ${SONG_HOURS})
     order by created_at desc, id desc limit 1`,
    [account_id],
    'template-song',
  );
  if (row === undefined) return null;
  const {
    title,
    artist,
    is_playing: isPlaying,
    duration_ms: durationMs,
    cover_url: coverUrl,
  } = drawnSong(parsedJson(row.raw));
  const song = [artist, title].filter((one) => one !== null).join(' - ');
  return { title, artist, song, isPlaying, durationMs, coverUrl };
}

async function botValues(services: ContextServices, { account_id, platform }: TemplateCause) {
  const rows = await services.db.query<{ id: string; platform: string; user: string }>(
    `select id, platform, platform_user_id as "user" from bot_connections where account_id = $1
     order by platform = $2 desc, platform`,
    [account_id, platform ?? ''],
    'template-bots',
  );
  const names = await grantNames(
    services,
    rows.map(({ id }) => id),
  );
  const nameOf = ({ id }: { id: string }) => names.get(id)?.display_name ?? null;
  const bot = rows.find((row) => row.platform !== 'discord');
  const guild = rows.find((row) => row.platform === 'discord');
  return {
    bot: bot && { name: nameOf(bot), platform: bot.platform },
    discord: guild && { serverId: guild.user, serverName: nameOf(guild) },
  };
}

async function variablesOf(services: ContextServices, account_id: string, names: readonly string[]) {
  const wanted = names.flatMap((name) => (groupOf(name) === 'custom' ? (name.split('.')[1] ?? []) : []));
  const found = await readVariables(services, account_id, wanted);
  return Object.fromEntries(found.map(({ name, value }) => [name, value]));
}
