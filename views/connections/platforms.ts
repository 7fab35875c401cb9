import { z } from 'zod';
import { labelOf } from '../../domain/operators/feature-flags';
import { CONNECTION_KINDS, PROVIDERS } from '../../domain/connections/providers';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { enabledFor } from './providers';

const MODERATION = ['ban', 'timeout', 'delete'] as const;

/** A platform and its capabilities, for front ends. Source: spec doc2 §4.1, §4.3. */
export const PlatformMetadata = z
  .object({
    platform: z.string(),
    label: z.string(),
    login: z.boolean().describe('People may log in with it now'),
    channel: z.boolean().describe('A channel may be connected now'),
    bot: z.boolean().describe('A bot may be connected now'),
    streaming: z.boolean().describe('It has streams, chat and events'),
    moderation: z
      .array(z.enum(MODERATION).meta({ id: 'PlatformModerationAction' }))
      .describe('What moderators can do in its chat'),
    max_message_length: z.int().nullable().describe('Characters of a chat message; null where none is sent'),
  })
  .meta({ id: 'PlatformMetadata' });
export type PlatformMetadata = z.output<typeof PlatformMetadata>;

/** Source of the actions: spec doc2 §4.3 "Moderation per platform". */
const CHAT: Record<Platform, Pick<PlatformMetadata, 'moderation' | 'max_message_length'>> = {
  twitch: { moderation: [...MODERATION], max_message_length: 500 },
  youtube: { moderation: [...MODERATION], max_message_length: 200 },
  kick: { moderation: ['delete'], max_message_length: 500 },
  trovo: { moderation: ['ban'], max_message_length: 300 },
};

const chatOf = (slug: string) => CHAT[slug as Platform] ?? { moderation: [], max_message_length: null };

/** All providers, in the order in which they are offered. */
export async function platformMetadata(db: Queryable): Promise<PlatformMetadata[]> {
  const [login, channel, bot] = await Promise.all(CONNECTION_KINDS.map((kind) => enabledFor(db, [kind])));
  return PROVIDERS.map(({ slug }) => ({
    platform: slug,
    label: labelOf(`platform:${slug}`),
    login: login!.includes(slug),
    channel: channel!.includes(slug),
    bot: bot!.includes(slug),
    streaming: (PLATFORMS as readonly string[]).includes(slug),
    ...chatOf(slug),
  }));
}
