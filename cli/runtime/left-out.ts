import { SUBJECT_KEY_TABLES } from '../../privacy/subject-keys/postgres';
import type { Projection } from '../../kernel/projection';

/** Tables of momentary state, useless elsewhere: running work, and messages pushed under the old realtime epoch. */
const OF_THE_MOMENT = [
  'outbox',
  'outbox_heads',
  'channel_heads',
  'job_holders',
  'leases',
  'broker_members',
  'broker_leases',
  'twitch_conduits',
  'twitch_conduit_subscriptions',
];
/** Indexes that are rebuilt from the logs. */
const INDEXES = ['subject_sources', 'subject_places', 'subject_streams'];

/** Tables excluded from backups: derived, momentary, or backed up separately. */
export const tablesLeftOut = (projections: readonly Pick<Projection, 'tables'>[]): string[] => [
  ...projections.flatMap(({ tables }) => tables),
  ...OF_THE_MOMENT,
  ...INDEXES,
  ...SUBJECT_KEY_TABLES,
];
