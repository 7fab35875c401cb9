import type { Knex } from 'knex';
import { installation } from './0001-installation';
import { eventStore } from './0002-event-store';
import { broker } from './0003-broker';
import { subjectKeys } from './0004-keys';
import { projections } from './0005-projections';
import { identity } from './0006-identity';
import { idempotency } from './0007-idempotency';
import { eventLog } from './0008-event-log';
import { ingest } from './0009-ingest';
import { leases } from './0010-leases';
import { outboxTrace } from './0011-outbox-trace';
import { archive } from './0012-archive';
import { streamSamples } from './0013-stream-samples';
import { topicRelays } from './0014-topic-relays';
import { idempotencyHolder } from './0015-idempotency-holder';
import { brokerAppend } from './0016-broker-append';
import { outboxNarrow } from './0017-outbox-narrow';
import { rebuiltTables } from './0018-rebuilt-tables';
import { profiles } from './0021-profiles';
import { outboxLock } from './0024-outbox-lock';

/** One step of the schema. `down` is not offered: a wrong step is mended by the next one. */
export interface Migration {
  name: string;
  /**
   * The schema generation that begins with this step, one above the last. Only a step after which the builds before cannot run has one: they
   * refuse to start from then on. Other steps only add, and builds before go on beside them.
   */
  generation?: number;
  up(knex: Knex): Promise<void>;
}

/** In the order they are applied; never reordered, never edited once released. */
export const MIGRATIONS: readonly Migration[] = [
  installation,
  eventStore,
  broker,
  subjectKeys,
  projections,
  identity,
  idempotency,
  eventLog,
  ingest,
  leases,
  outboxTrace,
  archive,
  streamSamples,
  topicRelays,
  idempotencyHolder,
  brokerAppend,
  outboxNarrow,
  rebuiltTables,
  profiles,
  outboxLock,
];
