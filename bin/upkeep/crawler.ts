import type { Platform } from '../../domain/common/vendors';
import type { Engines } from '../../engines/engines';
import type { Logger } from '../../engines/log/port';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import type { JobDeclaration } from '../../kernel/job';
import type { Settings } from '../../kernel/settings/settings';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { systemApp } from '../../services/connections/oauth-apps';
import { crawlChannels } from '../../services/history/crawl';
import { sweepCrawled } from '../../services/history/crawled-rows';
import type { HttpClients } from '../../vendors/http/port';
import { kickCrawl } from '../../vendors/kick/crawl';
import { trovoCrawl } from '../../vendors/trovo/crawl';
import { twitchCrawl } from '../../vendors/twitch/crawl';
import { youtubeCrawl } from '../../vendors/youtube/crawl';
import { recurring } from './upkeep';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Reads watched channels, as far as operators have enabled it, and deletes what has expired of it. */
export function crawlerJobs(settings: Settings, engines: Engines, http: HttpClients, log: Logger): JobDeclaration[] {
  const { projector_db: db, secrets, subject_keys } = engines;
  const { google } = settings;
  const quota = createYoutubeQuota({ db, daily_units: google.daily_quota });
  const parts = {
    db,
    texts: createPersonalTexts(subject_keys),
    hashes: subject_keys,
    crawls: {
      twitch: twitchCrawl(http, settings.twitch),
      kick: kickCrawl(http, settings.kick),
      trovo: trovoCrawl(http, settings.trovo),
      ...(google.api_key !== '' && { youtube: youtubeCrawl(http, google, quota) }),
    },
    app: (platform: Platform) => systemApp({ db, secrets, settings }, platform),
  };
  return [
    recurring(MINUTE_MS, 'crawler', (signal) => crawlChannels(parts, signal), log),
    recurring(DAY_MS, 'crawler-retention', (signal) => sweepCrawled(db, signal), log, HOUR_MS),
  ];
}
