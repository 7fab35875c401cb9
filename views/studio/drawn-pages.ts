import { DRAWN_TYPES, widgetType } from '../../domain/studio/widget-types';
import { ERASED_RAW } from '../../domain/common/records';
import {
  drawnEvent,
  drawnSong,
  FOLLOWER_TYPES,
  maskDrawn,
  TIP_TYPES,
  type DrawnEvent,
  type DrawnSong,
} from '../../domain/studio/drawn-events';
import type { Queryable } from '../../engines/postgres/port';
import type { Forwards } from '../../kernel/channel';
import type { Json } from '../../lib/json/json';
import { parsedJson } from '../../lib/json/paths';
import { maskOf } from '../../services/automation/modules/masks';
import { assetsOf, type AssetSources } from './drawn-assets';
import { inOrder, type OverlayLayer } from './overlays';

const flagOf = (type: string): string | null => widgetType(type)?.flag ?? null;
const forwards = (account_id: string, types: readonly string[]): Forwards => ({
  account_id,
  types: types.map((type) => ({ type, flag: flagOf(type) })),
});

/** The account of the page, where no access entry hides it from the user. */
const accountFor =
  (kind: 'overlay' | 'widget', by: string) =>
  async (db: Queryable, id: string, user_id: string | null): Promise<string | null> => {
    const [row] = await db.query<{ account_id: string }>(
      `select o.account_id from ${kind}s o join accounts a on a.id = o.account_id where o.${by} = $1
         and (a.owner_id::text = $2 or not exists (
           select from ${kind}_access x where x.${kind}_id = o.id and x.user_id::text = $2 and x.role = 'none'))`,
      [id, user_id],
      `${kind}-account`,
    );
    return row?.account_id ?? null;
  };
export const overlayAccount = accountFor('overlay', 'key');
export const widgetAccount = accountFor('widget', 'id::text');

/** Types that the visible layers of an overlay draw. */
export async function overlayForwards(db: Queryable, key: string): Promise<Forwards | null> {
  const rows = await db.query<{ account_id: string; type: string | null }>(
    `select distinct o.account_id, l.type from overlays o
       left join overlay_layers l on l.overlay_id = o.id and l.visible where o.key = $1`,
    [key],
    'overlay-forwards',
  );
  const [first] = rows;
  return first === undefined
    ? null
    : forwards(
        first.account_id,
        rows.flatMap(({ type }) => type ?? []),
      );
}

/** The type that a widget draws. */
export async function widgetForwards(db: Queryable, id: string): Promise<Forwards | null> {
  const [row] = await db.query<{ account_id: string; widget_type: string }>(
    'select account_id, widget_type from widgets where id::text = $1',
    [id],
    'widget-forwards',
  );
  const type = row && DRAWN_TYPES.find((one) => widgetType(row.widget_type)?.type === one);
  return row === undefined ? null : forwards(row.account_id, type === undefined ? [] : [type]);
}

interface OverlayRow extends Record<string, unknown> {
  id: string;
  account_id: string;
  revision: number;
  width: number;
  alerts_paused: boolean;
  alerts_muted: boolean;
  height: number;
  background: string;
}

/** First message of a page, besides its emotes. */
type PageBeginning = { account_id: string } & Readonly<Record<string, unknown>>;

/** First message of an overlay's page; null of an unknown key. */
export async function overlayPage(db: Queryable, key: string, sources: Sources): Promise<PageBeginning | null> {
  const rows = await db.query<OverlayRow & { layer: OverlayLayer | null }>(
    `select o.id, o.account_id, o.revision, o.width, o.height, o.background, o.alerts_paused,
       o.alerts_muted,
       case when l.id is not null then jsonb_build_object('id', l.id, 'type', l.type, 'name', l.name,
         'config', l.config, 'visible', l.visible, 'sort_order', l.sort_order, 'locked', l.locked) end as layer
     from overlays o left join overlay_layers l on l.overlay_id = o.id and l.visible where o.key = $1`,
    [key],
    'overlay-page',
  );
  const [first] = rows;
  if (first === undefined) return null;
  const { id: overlay_id, account_id, revision, width, height, background } = first;
  const alerts = { paused: first.alerts_paused, muted: first.alerts_muted };
  const undrawn = await undrawnTypes(account_id, sources);
  const layers = inOrder(rows.flatMap(({ layer }) => (layer === null || undrawn.includes(layer.type) ? [] : [layer])));
  const page = { overlay_id, account_id, revision, undrawn };
  const assets = await assetsOf(
    db,
    account_id,
    layers.map(({ config }) => config as Json),
    sources,
  );
  const types = layers.map(({ type }) => type);
  const state = await accountState(db, account_id, types, sources);
  return { ...page, width, height, background, layers, ...state, alerts, assets };
}

interface WidgetRow extends Record<string, unknown> {
  account_id: string;
  widget_type: string;
  config: Json;
  revision: number;
  alerts_paused: boolean;
  alerts_muted: boolean;
}

/** First message of a widget's page; null of an unknown id. */
export async function widgetPage(db: Queryable, id: string, sources: Sources): Promise<PageBeginning | null> {
  const [row] = await db.query<WidgetRow>(
    'select account_id, widget_type, config, revision, alerts_paused, alerts_muted from widgets where id::text = $1',
    [id],
    'widget-page',
  );
  if (row === undefined) return null;
  const type = widgetType(row.widget_type)?.type;
  const { account_id, config, revision } = row;
  return {
    widget_instance_id: id,
    account_id,
    revision,
    undrawn: await undrawnTypes(account_id, sources),
    type,
    config,
    ...(await accountState(db, account_id, type === undefined ? [] : [type], sources)),
    alerts: { paused: row.alerts_paused, muted: row.alerts_muted },
    assets: await assetsOf(db, account_id, [config], sources),
  };
}

/** Types of layers whose flags are off. */
async function undrawnTypes(account_id: string, { enabled }: Sources): Promise<string[]> {
  const flagged = DRAWN_TYPES.filter((type) => flagOf(type) !== null);
  const on = await Promise.all(flagged.map(async (type) => enabled(flagOf(type)!, account_id)));
  return flagged.filter((_type, index) => !on[index]);
}

/** Newest events that an event list begins with. */
const RECENT = 20;
const LISTS_EVENTS: ReadonlySet<string> = new Set(['event_list', 'custom']);

/** Flags, files and the player of an account. */
export interface Sources extends AssetSources {
  playing(account_id: string): Promise<object | null>;
}

/** State of its account that a page draws; null of an unknown page. */
export const drawnState = async (db: Queryable, forwards: Forwards | null, sources: Sources): Promise<object | null> =>
  forwards &&
  accountState(
    db,
    forwards.account_id,
    forwards.types.map(({ type }) => type),
    sources,
  );

/** State of an account at the start of a page; without sources whose flags are off. */
async function accountState(
  db: Queryable,
  account_id: string,
  types: readonly string[],
  { enabled, playing }: Sources,
): Promise<object> {
  const [has_events, has_music] = await Promise.all([
    enabled('feature:events', account_id),
    enabled('feature:music', account_id),
  ]);
  const newest = (types: readonly string[] | null, limit: number) =>
    has_events ? newestEvents(db, account_id, types, limit) : [];
  const [recent, [newest_follower], [newest_tip], state, mask] = await Promise.all([
    types.some((type) => LISTS_EVENTS.has(type)) ? newest(null, 2 * RECENT) : [],
    newest(FOLLOWER_TYPES, 1),
    newest(TIP_TYPES, 1),
    has_music ? playing(account_id) : null,
    maskOf(db, account_id),
  ]);
  const song = state === null ? null : maskDrawn(drawnSong(state as Json), mask);
  const [follower, tip] = [newest_follower, newest_tip].map((event) => event && maskDrawn(event, mask));
  const labels = {
    last_follower: follower?.user_name ?? null,
    last_tip: tip ? tipText(tip) : null,
    song: song === null ? null : songText(song),
  };
  return { labels, song, recent: recent.slice(0, RECENT).map((event) => maskDrawn(event, mask)) };
}

const songText = ({ title, artist }: DrawnSong): string | null =>
  [title, artist].filter((part) => part !== null).join(' – ') || null;

const tipText = ({ user_name, amount, currency }: DrawnEvent): string =>
  [user_name, amount === null ? null : `${amount} ${currency ?? ''}`.trim()].filter((part) => part !== null).join(' ');

/** Newest events of the log that pages draw, newest first. */
async function newestEvents(
  db: Queryable,
  account_id: string,
  types: readonly string[] | null,
  limit: number,
): Promise<DrawnEvent[]> {
  const rows = await db.query<{ id: string; type: string; platform: string; raw: string; created_at: string }>(
    `select id, type, platform, raw, created_at from platform_event_logs
     where account_id = $1 and ($2::text[] is null or type = any($2)) and raw::text <> $4
     order by created_at desc, id desc limit $3`,
    [account_id, types === null ? null : [...types], limit, ERASED_RAW],
    'page-newest-events',
  );
  return rows.flatMap(({ raw, ...event }) => drawnEvent({ ...event, payload: parsedJson(raw) }) ?? []);
}
