import { z } from 'zod';
import { yieldToEventLoop } from '../../lib/async/signal';
import { channelsOf } from '../../views/studio/page-channels';
import { drawnState, type Sources } from '../../views/studio/drawn-pages';
import type { Forwards } from '../../kernel/channel';
import { nowPlaying } from '../control/music';
import type { ChannelServices } from '../runtime/channel/family';

const DrawnEvent = z
  .object({
    id: z.uuid().nullable().describe('Null of a test event'),
    type: z.string(),
    platform: z.string(),
    user_name: z.string().nullable(),
    amount: z.number().nullable(),
    currency: z.string().nullable(),
    months: z.number().nullable(),
    count: z.number().nullable(),
    tier: z.string().nullable(),
    message: z.string().nullable(),
    title: z.string().nullable(),
    created_at: z.string(),
  })
  .meta({ id: 'DrawnEvent' });
const PagePictures = z
  .object({
    platform: z.string(),
    channel_id: z.string(),
    sets: z.array(z.unknown()).describe('As of `GET /v1/emotes/{platform}/{channel_id}`'),
    badges: z.array(z.unknown()),
  })
  .meta({ id: 'PagePictures' });
type PagePictures = z.output<typeof PagePictures>;
const DrawnMessage = z.looseObject({}).describe('Members that are drawn, never the payload of a vendor');

/** Messages of a page besides its own state. */
export const pageMessages = {
  'overlay:alerts': {
    summary:
      'Alerts wait, go on, are silenced or audible again; the alert that is shown ends (`skip`), or that of an event ' +
      'is played again (`replay`). These two are not stored.',
    data: z.object({
      action: z.enum(['pause', 'resume', 'mute', 'unmute', 'skip', 'replay']),
      paused: z.boolean(),
      muted: z.boolean(),
      event: DrawnEvent.nullable().describe('Of `replay` alone'),
    }),
  },
  '*': { summary: 'A message of a chat, an event, or what is playing, by its own type.', data: DrawnMessage },
};

/** State of the account at the start of a page. */
export const pageState = {
  account_id: z.uuid().optional().describe('Its sounds are on `sounds:<account_id>`'),
  undrawn: z.array(z.string()).optional().describe('Types of layers whose flags are off'),
  emotes: z
    .array(PagePictures)
    .optional()
    .describe("Of the account's channels: those in memory, and all in a message of their own once they are fetched"),
  assets: z.record(z.string(), z.string()).optional().describe('Signed links by the ids of files'),
  labels: z
    .object({ last_follower: z.string().nullable(), last_tip: z.string().nullable(), song: z.string().nullable() })
    .optional(),
  song: z.looseObject({}).nullable().optional().describe('Song that the player of the account plays'),
  recent: z.array(DrawnEvent).optional().describe('The newest 20 events, newest first, where a layer lists events'),
  alerts: z.object({ paused: z.boolean(), muted: z.boolean() }).optional(),
};

interface PageWithPictures {
  account_id: string;
}

/**
 * Sends the state of a page with the emotes and badges that are in memory, and all of them later where some have to be
 * fetched: vendors delay no subscription.
 */
export async function sendWithPictures(
  page: PageWithPictures,
  { db, pictures, log }: Pick<ChannelServices, 'db' | 'pictures' | 'log'>,
  send: (data: string) => void,
): Promise<void> {
  const channels = await channelsOf(db, page.account_id);
  const fetched = Promise.all(
    channels.map(async ({ platform, channel_id }) => ({
      ...{ platform, channel_id },
      ...(await pictures(platform, channel_id)),
    })),
  ) as Promise<PagePictures[]>;
  const known = await Promise.race([fetched, yieldToEventLoop()]);
  send(JSON.stringify({ ...page, emotes: known ?? [] }));
  if (known !== undefined) return;
  fetched
    .then((emotes) => send(JSON.stringify({ emotes })))
    .catch((error: unknown) =>
      log.warn({ err: error, account_id: page.account_id }, 'a page begins without emotes and badges'),
    );
}

/** Flags, links and the player of an account, for the state of its pages. */
export const sourcesOf = ({ db, features, fileLink }: ChannelServices): Sources => ({
  enabled: features.enabled,
  link: fileLink,
  playing: (account_id) => nowPlaying(db, account_id),
});

/** Message with the state of its account that a page draws; null of an unknown page. */
export async function stateMessage(
  event_type: 'overlay:update' | 'widget:update',
  forwards: Forwards | null,
  services: ChannelServices,
): Promise<{ event_type: string; data: string } | null> {
  const state = await drawnState(services.db, forwards, sourcesOf(services));
  return state && { event_type, data: JSON.stringify(state) };
}
