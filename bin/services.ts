import { createAccountRights } from '../access/account-rights';
import type { AccessChanges } from '../access/changes';
import type { RequestContext, Written } from '../access/caller';
import { metadata, typesOf } from '../access/metadata';
import type { FeatureFlags, ReadModels, Services } from '../access/services';
import type { Settings } from '../kernel/settings';
import type { Tokens } from '../access/tokens';
import { stringify } from '../kernel/raw-json';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { keepsOneOrder } from '../projections/runtime/outbox-order';
import { TransientSender } from '../realtime/runtime/transient';
import { readersOf, rightsReadersOf } from './areas';
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

/**
 * How much longer a command waits for read models of what callers may do, in all of its acts: what it ends is over when
 * it answers.
 */
const RIGHTS_WAIT_MS = 10_000;

/**
 * Waits, within the bound, until the read models have what was written; false when one was behind. From the first that
 * was, all waits of a request end together: a command that ends many things waits once, not for each of them.
 */
export async function shown(
  read_models: ReadModels,
  context: Pick<RequestContext, 'behind_until'>,
  written: Written,
): Promise<boolean> {
  if ('topic' in written) return read_models.applied(written.topic, new Map(written.ends), written.projections);
  const { position, types } = written;
  const { behind_until: until } = context;
  if (await read_models.passed(position, readersOf(types), { until })) return true;
  context.behind_until ??= performance.now() + RIGHTS_WAIT_MS;
  await read_models.passed(position, rightsReadersOf(types), {
    within_ms: RIGHTS_WAIT_MS,
    until: context.behind_until,
  });
  return false;
}

/** What operations may use, over the engines. */
export function createServices(parts: ServiceParts): Services {
  const { settings, engines, db, read_models, features, tokens, logins, oauth, access } = parts;
  const awaitShown: Services['awaitShown'] = async (context, written) => {
    if (await shown(read_models, context, written)) return;
    (context.response_headers ??= {})['x-lumio-read-model'] = 'behind';
    (context.not_shown ??= []).push(written);
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
    async commit(request, writes, onAppended) {
      const result = await engines.events.append(writes, metadata(request.caller, request.context));
      onAppended?.();
      await awaitShown(request.context, { position: result.position, types: typesOf(writes) });
      return result;
    },
  };
}

/** Messages that are pushed and kept nowhere. */
export function liveOf({ relay, db }: Pick<Engines, 'relay' | 'db'>, metrics: Metrics): Services['live'] {
  const transient = new TransientSender({ relay, metrics, builds_before: () => keepsOneOrder(db) });
  return {
    async broadcast(channel, message) {
      await transient.publish(channel, stringify(message));
    },
  };
}
