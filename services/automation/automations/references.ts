import type { Services } from '../../../app/services';
import { type Graph, type Reference, referencesOf } from '../../../domain/automation/automation-graphs';
import type { ReferenceKind } from '../../../domain/automation/nodes/node-type';
import type { Queryable } from '../../../engines/postgres/port';
import { textChannelsOf } from '../../discord/channels';

type ReferenceServices = { db: Pick<Queryable, 'query'> } & Pick<Services, 'discord'>;

/** Keys of the things of an account ($1) with these ids ($2), for each kind that a table lists. */
const FOUND: Readonly<Record<Exclude<ReferenceKind, 'discord_channel'>, string>> = {
  automation: 'select id::text as key from automations where account_id = $1 and id = any($2::text[]::uuid[])',
  sound: 'select id::text as key from sounds where account_id = $1 and id = any($2::text[]::uuid[])',
  overlay: 'select id::text as key from overlays where account_id = $1 and id = any($2::text[]::uuid[])',
  layer: `select o.id || '/' || l.id as key from overlays o join overlay_layers l on l.overlay_id = o.id
    where o.account_id = $1 and l.id = any($2::text[]::uuid[])`,
};

/** A layer is named with its overlay. */
const keyOf = ({ kind, id, config }: Reference): string =>
  (kind === 'layer' ? `${String(config.overlay_id)}/${id}` : id).toLowerCase();

/** @throws ApiError with 503 while Discord does not answer */
async function foundKeys(
  services: ReferenceServices,
  account_id: string,
  kind: ReferenceKind,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (kind !== 'discord_channel') {
    const rows = await services.db.query<{ key: string }>(FOUND[kind], [account_id, ids], `graph-references-${kind}`);
    return new Set(rows.map(({ key }) => key));
  }
  const guilds = await services.db.query<{ id: string }>(
    `select platform_user_id as id from bot_connections where account_id = $1 and platform = 'discord'`,
    [account_id],
    'graph-discord-servers',
  );
  const channels = await Promise.all(guilds.map(({ id }) => textChannelsOf(services, id)));
  return new Set(channels.flat().map(({ id }) => id));
}

/** The first thing that a graph names and the account does not have; undefined where it has all. */
export async function missingReference(
  services: ReferenceServices,
  account_id: string,
  graph: Graph,
): Promise<Reference | undefined> {
  const references = referencesOf(graph);
  for (const kind of new Set(references.map((one) => one.kind))) {
    const named = references.filter((one) => one.kind === kind);
    const found = await foundKeys(
      services,
      account_id,
      kind,
      named.map(({ id }) => id),
    );
    const missing = named.find((one) => !found.has(keyOf(one)));
    if (missing !== undefined) return missing;
  }
  return undefined;
}
