import type { Engines } from '../../engines/engines';
import type { Logger } from '../../engines/log/port';
import type { JobDeclaration } from '../../kernel/job';
import type { Settings } from '../../kernel/settings/settings';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';
import { createArchiveReader } from '../../maintenance/archive/reader';
import { openPlainFiles } from '../../engines/blobs/plain-files';
import type { PlainFiles } from '../../engines/blobs/port';
import { expireLake, writeLake } from '../../maintenance/lake/lake';
import { recurring } from './upkeep';

const WRITE_MS = 600_000;
const HOUR_MS = 3_600_000;

/** Writes closed hours of the log to the lake, where one is configured. */
export function lakeJobs(
  { lake: { url, persons } }: Pick<Settings, 'lake'>,
  engines: Engines,
  log: Logger,
  stops: ShutdownStack,
): JobDeclaration[] {
  if (url === undefined) return [];
  const { projector_db: db } = engines;
  let store: PlainFiles | undefined;
  stops.add(() => store?.close());
  const write = async (signal: AbortSignal) => {
    store ??= await openPlainFiles(url);
    const { broker, records, events } = engines;
    const readArchived = createArchiveReader(engines);
    return writeLake({ db, broker, records, events, readArchived, store, persons }, signal);
  };
  return [
    recurring(WRITE_MS, 'lake', write, log, HOUR_MS),
    recurring(24 * HOUR_MS, 'lake-retention', (signal) => expireLake(db, signal), log),
  ];
}
