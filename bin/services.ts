import { createAccountRights } from '../access/account-rights';
import type { AccessChanges } from '../access/changes';
import { metadata } from '../access/metadata';
import type { FeatureFlags, ReadModels, Services } from '../access/services';
import { awaiting, committing } from '../access/shown';
import type { Settings } from '../kernel/settings';
import type { Tokens } from '../access/tokens';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { keepsOneOrder } from '../projections/runtime/outbox-order';
import { createLiveMessages } from '../realtime/runtime/live-messages';
import { READERS } from './areas';
import type { Engines } from '../engines/engines';

export interface ServiceParts {
  settings: Settings;
  engines: Engines;
  metrics: Metrics;
  /** As operations may use it. */
  db: Database;
  read_models: ReadModels;
  features: FeatureFlags;
  tokens: Tokens;
  logins: Services['logins'];
  oauth: Services['oauth'];
  access: AccessChanges;
}

/** What operations may use, over the engines. */
export function createServices(parts: ServiceParts): Services {
  const { settings, engines, db, read_models, features, tokens, logins, oauth, access } = parts;
  const awaitShown = awaiting(read_models, READERS);
  return {
    settings,
    db,
    events: engines.events,
    records: engines.records,
    relay: engines.relay,
    cache: engines.cache,
    blobs: engines.blobs,
    secrets: engines.secrets,
    texts: createPersonalTexts(engines.subject_keys),
    read_models,
    features,
    accounts: createAccountRights(engines),
    tokens,
    logins,
    oauth,
    access,
    live: liveOf(engines, parts.metrics),
    metadata,
    awaitShown,
    commit: committing(engines.events, awaitShown),
  };
}

/** Messages that are pushed and kept nowhere. */
export const liveOf = ({ relay, db }: Pick<Engines, 'relay' | 'db'>, metrics: Metrics): Services['live'] =>
  createLiveMessages({ relay, metrics, builds_before: () => keepsOneOrder(db) });
