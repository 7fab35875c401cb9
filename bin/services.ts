import { createAccountRights } from '../access/authorization/account-rights';
import type { AccessInvalidation } from '../access/authentication/access-invalidation';
import { metadata } from '../app/write-path/metadata';
import type { FeatureFlags, ReadModels, Services } from '../app/services';
import { createAwaitReadModels, createCommit } from '../app/read-your-writes';
import type { Settings } from '../kernel/settings/settings';
import type { Tokens } from '../access/authentication/tokens/jwt';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import { eraseFromChats } from '../privacy/erasure/erase-chat';
import { eraseRowsOf } from '../privacy/erasure/erasure';
import { createArchiveReader } from '../maintenance/archive/reader';
import { createPersonalTexts } from '../privacy/subject-keys/texts';
import type { Jobs } from '../reactors/runtime/jobs';
import { keepsOneOrder } from '../projections/runtime/outbox/order';
import { createLiveMessages } from '../realtime/runtime/relay/live-messages';
import { READERS } from './areas';
import { erasingOn, RECORD_ERASERS } from './upkeep/erasers';
import type { Engines } from '../engines/engines';

export interface ServiceParts {
  settings: Settings;
  engines: Engines;
  metrics: Metrics;
  /** Database with the restrictions for operations. */
  db: Database;
  read_models: ReadModels;
  features: FeatureFlags;
  tokens: Tokens;
  logins: Services['logins'];
  oauth: Services['oauth'];
  chat: Pick<Services, 'chat' | 'discord' | 'emotes' | 'profile_breakers' | 'connection_tokens' | 'spendYoutube'>;
  access: AccessInvalidation;
  jobs: Pick<Jobs<never>, 'enqueueNamed' | 'wake'>;
}

/** Creates the services of operations over the engines. */
export function createServices(parts: ServiceParts): Services {
  const { settings, engines, db, read_models, features, tokens, logins, oauth, chat, access } = parts;
  const awaitShown = createAwaitReadModels(read_models, READERS);
  const erasing = erasingOn(engines);
  const eraseNamed = async (hash: string, signal: AbortSignal) => {
    const readArchived = createArchiveReader(engines);
    await eraseRowsOf({ ...erasing, erasers: RECORD_ERASERS, readArchived, signal }, hash);
    engines.wakeups.notify('messages-erased');
  };
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
    hashes: engines.subject_keys,
    read_models,
    features,
    accounts: createAccountRights(engines),
    tokens,
    logins,
    oauth,
    ...chat,
    access,
    async enqueue(requests) {
      if (requests.length === 0) return;
      await engines.db.transaction((tx) => parts.jobs.enqueueNamed(tx, requests));
      parts.jobs.wake();
    },
    eraseChats: (subjects) => eraseFromChats({ ...erasing, eraseNamed }, subjects),
    live: liveOf(engines, parts.metrics),
    metadata,
    awaitShown,
    commit: createCommit(engines.events, awaitShown),
  };
}

/** Live messages, which are never stored. */
export const liveOf = ({ relay, db }: Pick<Engines, 'relay' | 'db'>, metrics: Metrics): Services['live'] =>
  createLiveMessages({ relay, metrics, older_nodes_connected: () => keepsOneOrder(db) });
