import { z } from 'zod';
import type { AccessRole } from '../../domain/studio/access-entries';
import type { Queryable } from '../../engines/postgres/port';
import { candidateMembers, entryMembers } from './access-entries';

const dateTime = z.string().meta({ format: 'date-time' });

/** An overlay of an account. Source: spec extra-facts §7. */
export const Overlay = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    folder_id: z.uuid().nullable(),
    name: z.string(),
    key: z.string().describe('Of its channel, `overlay:<key>`, and of its page'),
    width: z.int(),
    height: z.int(),
    background: z.string().describe('`transparent` or a hex colour'),
    revision: z.int().describe('Number of changes of its layers'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'Overlay' });
export type Overlay = z.output<typeof Overlay>;

/** A reader; a member without an entry has what their role allows. */
export interface OverlayReader {
  account_id: string;
  /** Null of keys of the account, which no entry binds. */
  user_id: string | null;
}

const OVERLAY = `o.id, o.account_id, o.folder_id, o.name, o.key, o.width, o.height, o.background, o.revision,
  o.created_at, o.updated_at`;
/** The entry that binds a reader ($2); an owner is bound by none. */
const ENTRY = `left join overlay_access x on x.overlay_id = o.id and x.user_id = $2
  and not exists (select from accounts a where a.id = o.account_id and a.owner_id = $2)`;
const SEEN = `x.role is distinct from 'none'`;

type Seen = Overlay & { role: AccessRole | null } & Record<string, unknown>;

/** The overlays that the reader may see, oldest first, with the roles of the entries that bind them. */
export const overlaysOf = (db: Queryable, { account_id, user_id }: OverlayReader): Promise<Seen[]> =>
  db.query<Seen>(
    `select ${OVERLAY}, x.role from overlays o ${ENTRY} where o.account_id = $1 and ${SEEN} order by o.created_at, o.id`,
    [account_id, user_id],
    'overlays',
  );

/** An overlay that the reader may see, with the role of the entry that binds them. */
export async function overlayOf(
  db: Queryable,
  { account_id, user_id }: OverlayReader,
  id: string,
): Promise<Seen | undefined> {
  const [row] = await db.query<Seen>(
    `select ${OVERLAY}, x.role from overlays o ${ENTRY} where o.account_id = $1 and o.id = $3 and ${SEEN}`,
    [account_id, user_id, id],
    'overlay',
  );
  return row;
}

/** A layer of an overlay. */
export const OverlayLayer = z
  .object({
    id: z.uuid(),
    type: z.string(),
    name: z.string(),
    config: z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' }),
    visible: z.boolean(),
    sort_order: z.int(),
    locked: z.boolean().describe('Editors do not move it'),
  })
  .meta({ id: 'OverlayLayer' });
export type OverlayLayer = z.output<typeof OverlayLayer>;

/** Layers of an overlay at a revision. */
export const OverlayLayers = z
  .object({
    overlay_id: z.uuid(),
    revision: z.int(),
    layers: z.array(OverlayLayer).describe('Ascending by `sort_order`'),
  })
  .meta({ id: 'OverlayLayers' });

export const inOrder = <One extends Pick<OverlayLayer, 'sort_order' | 'id'>>(layers: readonly One[]): One[] =>
  [...layers].sort((a, b) => a.sort_order - b.sort_order || (a.id < b.id ? -1 : 1));

/** Layers of an overlay with its revision, from one moment. */
export async function layersOf(db: Queryable, overlay_id: string): Promise<z.output<typeof OverlayLayers>> {
  const rows = await db.query<OverlayLayer & { revision: number } & Record<string, unknown>>(
    `select o.revision, l.id, l.type, l.name, l.config, l.visible, l.sort_order, l.locked
     from overlays o left join overlay_layers l on l.overlay_id = o.id where o.id = $1`,
    [overlay_id],
    'overlay-layers',
  );
  const layers = rows.flatMap(({ revision: _revision, ...one }) => (one.id === null ? [] : [one]));
  return { overlay_id, revision: rows[0]?.revision ?? 0, layers: inOrder(layers) };
}

/** Entry that narrows a member's rights on one overlay. Source: spec doc2 §2.13. */
export const OverlayAccess = z
  .object({ id: z.uuid(), overlay_id: z.uuid(), ...entryMembers })
  .meta({ id: 'OverlayAccessEntry' });
export const OverlayAccessCandidate = z.object(candidateMembers).meta({ id: 'OverlayAccessCandidate' });

export const OverlayFolder = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    name: z.string(),
    parent_id: z.uuid().nullable(),
    created_at: dateTime,
  })
  .meta({ id: 'OverlayFolder' });
export type OverlayFolder = z.output<typeof OverlayFolder>;

/** Folders of an account, oldest first; with `id` that one. */
export const foldersOf = (db: Queryable, account_id: string, id: string | null = null): Promise<OverlayFolder[]> =>
  db.query<OverlayFolder & Record<string, unknown>>(
    `select id, account_id, name, parent_id, created_at from overlay_folders
     where account_id = $1 and ($2::uuid is null or id = $2) order by created_at, id`,
    [account_id, id],
    'overlay-folders',
  );

export const OverlaySharedLink = z
  .object({ id: z.uuid(), overlay_id: z.uuid(), created_at: dateTime, expires_at: dateTime })
  .meta({ id: 'OverlaySharedLink' });
export type OverlaySharedLink = z.output<typeof OverlaySharedLink>;

/** Active links of the overlays that the reader may see, oldest first; with `id` that one. */
export const linksOf = (
  db: Queryable,
  { account_id, user_id }: OverlayReader,
  id: string | null = null,
): Promise<(OverlaySharedLink & { role: AccessRole | null })[]> =>
  db.query<OverlaySharedLink & { role: AccessRole | null } & Record<string, unknown>>(
    `select t.id, t.resource_id as overlay_id, t.created_at, t.expires_at, x.role
     from overlay_tokens t join overlays o on o.id = t.resource_id ${ENTRY}
     where t.account_id = $1 and t.is_listed and t.expires_at > now() and ${SEEN} and ($3::uuid is null or t.id = $3)
     order by t.created_at, t.id`,
    [account_id, user_id, id],
    'overlay-links',
  );
