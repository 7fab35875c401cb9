import { z } from 'zod';

/** Platforms that the crawler reads, while it is enabled. */
export const CrawlerScope = z
  .object({ enabled: z.boolean(), platforms: z.array(z.string()) })
  .meta({ id: 'CrawlerScope' });

/** A channel that the crawler watches. */
export const WatchedChannel = z
  .object({
    id: z.uuid(),
    platform: z.string(),
    channel: z.string(),
    added_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'CrawlerWatchedChannel' });
