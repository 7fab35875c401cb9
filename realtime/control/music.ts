import { z } from 'zod';
import type { LiveMessages } from '../../app/services';
import type { Vendor } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const MUSIC = 'spotify' satisfies Vendor;

/** Broadcasts the state of the player on the account's channel. */
export const createNowPlayingPublisher =
  (live: LiveMessages) =>
  (account_id: string, data: unknown): Promise<void> => {
    const channel = `${MUSIC}:${account_id}`;
    const type = `${MUSIC}:now-playing`;
    return live.broadcast(channel, { type, channel, event_type: type, data });
  };

/** Validity of a player's last sign of life, which is renewed at least every 15 s. */
const HEARD_WITHIN = '2 minutes';

/** Present state of a player, from the state that its worker stored at the last change; null while none is polled. */
export async function nowPlaying(db: Queryable, account_id: string): Promise<object | null> {
  const [row] = await db.query<{ shown: Playing; since_ms: number }>(
    `select state->'shown' as shown,
       extract(epoch from clock_timestamp())::float8 * 1000 - (state->'seen'->>'at')::float8 as since_ms
     from channel_connections c join adapter_links a on a.connection_id = c.id::text
     where c.platform = $1 and c.account_id = $2 and a.vendor = $1
       and heard_at > clock_timestamp() - $3::interval and state->'shown' is not null
     order by heard_at desc limit 1`,
    [MUSIC, account_id, HEARD_WITHIN],
    'now-playing',
  );
  if (row === undefined) return null;
  const { shown, since_ms } = row;
  if (!shown.is_playing || typeof shown.progress_ms !== 'number') return shown;
  const position = shown.progress_ms + Math.max(0, Math.round(since_ms));
  return { ...shown, progress_ms: Math.min(position, shown.item?.duration_ms || position) };
}

interface Playing {
  is_playing?: boolean;
  progress_ms?: number | null;
  item?: { duration_ms?: number } | null;
}

export const music = channel({
  pattern: `${MUSIC}:<account_id>`,
  summary: 'What an account is listening to, now and with each change.',
  carries: { '*': { summary: 'The state of the player.', data: z.looseObject({}) } },
  gate: permission(`${MUSIC}:read`),
  flag: 'feature:music',
  message_type: `${MUSIC}:now-playing`,
  async bootstrap({ channel_id, send }, { db }) {
    const playing = await nowPlaying(db, channel_id);
    if (playing !== null) send(`${MUSIC}:now-playing`, JSON.stringify(playing));
  },
});
