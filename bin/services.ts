import { createAccountRights } from '../access/account-rights';
import type { AccessChanges } from '../access/changes';
import type { Caller, RequestContext, Written } from '../access/caller';
import type { FeatureFlags, ReadModels, Services } from '../access/services';
import type { Settings } from '../kernel/settings';
import type { Tokens } from '../access/tokens';
import { stringify } from '../kernel/raw-json';
import type { Metadata, StreamWrite } from '../engines/event-store/port';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { keepsOneOrder } from '../projections/runtime/outbox-order';
import { TransientSender } from '../realtime/runtime/transient';
import { readersOf } from './areas';
import type { Engines } from './engines';

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

/** The event types that these writes append. */
export const typesOf = (writes: readonly StreamWrite[]): string[] =>
  writes.flatMap(({ events }) => events.map(({ type }) => type));

/** Waits, within the bound, until the read models have what was written; false when one is behind. */
export const shown = (read_models: ReadModels, written: Written): Promise<boolean> =>
  'topic' in written
    ? read_models.applied(written.topic, new Map(written.ends), written.projections)
    : read_models.passed(written.position, readersOf(written.types));

/** What operations may use, over the engines. */
export function createServices(parts: ServiceParts): Services {
  const { settings, engines, db, read_models, features, tokens, logins, oauth, access } = parts;
  const settle: Services['settle'] = async (context, written) => {
    if (await shown(read_models, written)) return;
    (context.response_headers ??= {})['x-lumio-read-model'] = 'behind';
    (context.unsettled ??= []).push(written);
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
    settle,
    async commit(request, writes) {
      const result = await engines.events.append(writes, metadata(request.caller, request.context));
      await settle(request.context, { position: result.position, types: typesOf(writes) });
      return result;
    },
  };
}

/** Messages that are pushed and kept nowhere. */
export function liveOf({ relay, db }: Pick<Engines, 'relay' | 'db'>, metrics: Metrics): Services['live'] {
  const transient = new TransientSender({ relay, metrics, builds_before: () => keepsOneOrder(db) });
  return { broadcast: (channel, message) => transient.publish(channel, stringify(message)) };
}

/** Who did it, why, through which credential, and where it came from; flat strings, absent where unknown. Design §5. */
export function metadata(caller: Caller, context: RequestContext): Metadata {
  const facts = {
    // What a client did for a user is told from what they did themselves.
    actor_kind: caller.client ? 'oauth_client' : caller.kind,
    actor_id: caller.user_id,
    credential_id: caller.credential_id,
    account_id: caller.account_id,
    client_id: caller.client?.client_id ?? null,
    correlation_id: context.correlation_id,
    causation_id: context.causation_id ?? context.correlation_id,
    traceparent: context.trace,
    ip: context.ip || null,
  };
  return Object.fromEntries(Object.entries(facts).filter((entry): entry is [string, string] => entry[1] !== null));
}
