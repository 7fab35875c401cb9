import type { Settings } from '../../kernel/settings/settings';
import { TOPICS } from '../../domain/common/records';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { createArchiver } from '../../maintenance/archive/archive';
import type { Engines } from '../../engines/engines';
import { PROJECTIONS } from '../areas';
import type { JobDeclaration } from '../../kernel/job';
import { recurring } from './upkeep';

const HOUR_MS = 3_600_000;

/** The archiver over the engines, for every topic. */
export function archiverOf(
  { archive }: Pick<Settings, 'archive'>,
  engines: Pick<Engines, 'db' | 'broker' | 'blobs'>,
  log: Logger,
  metrics: Metrics,
  onProgress?: (records: number) => void,
): ReturnType<typeof createArchiver> {
  const { db, broker, blobs } = engines;
  const topics = Object.values(TOPICS);
  const { after: after_ms, trim } = archive;
  return createArchiver({
    db,
    broker,
    blobs,
    projections: PROJECTIONS,
    topics,
    log,
    metrics,
    after_ms,
    trim,
    onProgress,
  });
}

/** The archiver as an hourly job. */
export function archiving(settings: Settings, engines: Engines, log: Logger, metrics: Metrics): JobDeclaration {
  const archiver = archiverOf(settings, { ...engines, db: engines.projector_db }, log, metrics);
  return recurring(HOUR_MS, 'archive', async () => (await archiver.run()).records, log);
}
