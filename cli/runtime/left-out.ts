import { SUBJECT_KEY_TABLES } from '../../engines/subject-keys/postgres';
import type { Projection } from '../../kernel/projection';

/**
 * Not derived, and yet of no use anywhere else: who runs what now, and what was pushed under the old realtime epoch.
 */
const OF_THE_MOMENT = [
  'outbox',
  'outbox_heads',
  'channel_heads',
  'job_holders',
  'leases',
  'broker_members',
  'broker_leases',
];
/** Made again from the logs. */
const INDEXES = ['subject_sources', 'subject_places', 'subject_streams'];

/** Tables whose rows no backup has: derived, of the moment, or kept apart. */
export const tablesLeftOut = (projections: readonly Pick<Projection, 'tables'>[]): string[] => [
  ...projections.flatMap(({ tables }) => tables),
  ...OF_THE_MOMENT,
  ...INDEXES,
  ...SUBJECT_KEY_TABLES,
];
