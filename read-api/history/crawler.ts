import { z } from 'zod';
import { adminPermission, get, numbered, query, rowsOf } from '../../app/operation';
import { DEFAULT_SCOPE } from '../../domain/history/crawler';
import { CrawlerScope, WatchedChannel } from '../../views/history/crawler';

/** Source: spec doc1 §7.1. */
export const crawlerScope = query({
  name: 'crawlerScope',
  summary: 'Platforms that the crawler of public statistics reads',
  rest: get('/v1/crawler/scope'),
  guard: [adminPermission('crawler:scope-read')],
  input: z.object({}),
  output: CrawlerScope,
  async run(_call, { db }) {
    const [scope] = await db.query<z.output<typeof CrawlerScope>>('select enabled, platforms from crawler_scope');
    return scope ?? { enabled: DEFAULT_SCOPE.enabled, platforms: [...DEFAULT_SCOPE.platforms] };
  },
});

/** Source: spec doc2 §4.2. */
export const crawlerWatchlist = query({
  name: 'crawlerWatchlist',
  summary: 'Channels that the crawler watches, newest first',
  rest: get('/v1/watchlist'),
  pages: numbered('CrawlerWatchlistPage'),
  guard: [adminPermission('crawler:watchlist-read')],
  input: z.object({}),
  output: WatchedChannel,
  run: ({ page }, { db }) =>
    rowsOf(db, page, WatchedChannel, { from: 'crawler_watchlist', order: 'added_at desc, id', values: [] }),
});
