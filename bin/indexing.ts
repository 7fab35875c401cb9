import type { Logger } from '../engines/log/port';
import type { JobDeclaration } from '../kernel/job';
import { createArchiveReader } from '../maintenance/archive-reader';
import { indexEvents, indexTopic } from '../maintenance/subject-index';
import type { Engines } from '../engines/engines';
import { RECORD_ERASERS } from './erasers';
import { recurring } from './upkeep';

const HOUR_MS = 3_600_000;

/** Where each person's parts lie, brought up to date, so that an erasure has little left to read. */
export function indexing(engines: Engines, log: Logger): JobDeclaration {
  const deps = { ...engines, db: engines.projector_db, readArchived: createArchiveReader(engines) };
  const work = async () => {
    let read = await indexEvents(deps);
    for (const { topic } of RECORD_ERASERS) read += await indexTopic(deps, topic);
    return read;
  };
  return recurring(HOUR_MS, 'subject-index', work, log);
}
