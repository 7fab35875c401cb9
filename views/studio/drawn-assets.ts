import { filesIn } from '../../domain/studio/drawn-files';
import type { Queryable } from '../../engines/postgres/port';
import type { Json } from '../../lib/json/json';

/** A file of an account. */
export interface LinkedAsset {
  kind: 'sound' | 'upload';
  id: string;
  account_id: string;
}

/** Flags of an account, and links to its files. */
export interface AssetSources {
  enabled(flag: string, account_id: string): Promise<boolean> | boolean;
  link(file: LinkedAsset): Promise<string>;
}

/**
 * Links to the files that settings name, by their ids as the settings write them; deleted files and those of other
 * accounts have none.
 */
export async function assetsOf(
  db: Queryable,
  account_id: string,
  configs: readonly Json[],
  { enabled, link }: AssetSources,
): Promise<Record<string, string>> {
  const { uploads, sounds } = filesIn(configs);
  if (uploads.size === 0 && sounds.size === 0) return {};
  const plays = sounds.size > 0 && (await enabled('feature:sounds', account_id));
  const rows = await db.query<{ id: string; kind: LinkedAsset['kind'] }>(
    `select id::text, 'upload' as kind from uploads where account_id = $1 and id::text = any($2)
     union all select id::text, 'sound' from sounds where account_id = $1 and id::text = any($3)`,
    [account_id, stored(uploads), plays ? stored(sounds) : []],
    'page-assets',
  );
  const named = [...uploads, ...sounds];
  const links = rows.map(async ({ id, kind }) => {
    const url = await link({ kind, id, account_id });
    return named.filter((name) => name.toLowerCase() === id).map((name) => [name, url] as const);
  });
  return Object.fromEntries((await Promise.all(links)).flat());
}

/** Ids as columns have them: a UUID may be written in capitals. */
const stored = (ids: ReadonlySet<string>): string[] => [...ids].map((id) => id.toLowerCase());

/** Links to the files of an overlay's visible layers; null of an unknown key. */
export async function overlayAssets(
  db: Queryable,
  key: string,
  sources: AssetSources,
): Promise<Record<string, string> | null> {
  const rows = await db.query<{ account_id: string; config: Json }>(
    `select o.account_id, l.config from overlays o
       left join overlay_layers l on l.overlay_id = o.id and l.visible where o.key = $1`,
    [key],
    'overlay-assets',
  );
  const [first] = rows;
  if (first === undefined) return null;
  return assetsOf(
    db,
    first.account_id,
    rows.map(({ config }) => config),
    sources,
  );
}

/** Links to the files of a widget; null of an unknown id. */
export async function widgetAssets(
  db: Queryable,
  id: string,
  sources: AssetSources,
): Promise<Record<string, string> | null> {
  const [row] = await db.query<{ account_id: string; config: Json }>(
    'select account_id, config from widgets where id::text = $1',
    [id],
    'widget-assets',
  );
  return row === undefined ? null : assetsOf(db, row.account_id, [row.config], sources);
}
