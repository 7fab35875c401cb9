import { z } from 'zod';
import { ACCESS_ROLES, type AccessRole } from '../../domain/studio/widgets';
import { DRAWN_TYPES, WIDGET_TYPES } from '../../domain/studio/widget-types';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** A widget of an account; its token is shown when it is made. */
export const Widget = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    type: z.enum(DRAWN_TYPES),
    slug: z.string().describe('Slug of its type'),
    name: z.string(),
    config: z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' }),
    revision: z.int(),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'Widget' });
export type Widget = z.output<typeof Widget>;

/** A reader; a member without an entry has what their role allows. */
export interface WidgetReader {
  account_id: string;
  /** Null of keys of the account, which no entry binds. */
  user_id: string | null;
}

const WIDGET = `w.id, w.account_id, case w.widget_type
  ${WIDGET_TYPES.map(({ slug, type }) => `when '${slug}' then '${type}'`).join(' ')} end as type,
  w.widget_type as slug, w.name, w.config, w.revision, w.created_at, w.updated_at`;
/** The entry that binds a reader ($2); an owner is bound by none. */
const ENTRY = `left join widget_access x on x.widget_id = w.id and x.user_id = $2
  and not exists (select from accounts a where a.id = w.account_id and a.owner_id = $2)`;
const SEEN = `x.role is distinct from 'none'`;

/** A page of the widgets that the reader may see, newest first. */
export async function widgetsOf(
  db: Queryable,
  { account_id, user_id }: WidgetReader,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: Widget[]; total: number }> {
  const rows = await db.query<Widget & { total: number }>(
    `with seen as (select ${WIDGET} from widgets w ${ENTRY} where w.account_id = $1 and ${SEEN})
     select counted.total, page.* from (select count(*)::int as total from seen) counted
       left join (select * from seen order by created_at desc, id limit $3 offset $4) page on true
     order by created_at desc, id`,
    [account_id, user_id, limit, offset],
    'widgets',
  );
  const items = rows.flatMap(({ total: _total, ...item }) => (item.id === null ? [] : [item]));
  return { items, total: rows[0]!.total };
}

/** A widget that the reader may see, with the role of the entry that binds them. */
export async function widgetOf(
  db: Queryable,
  { account_id, user_id }: WidgetReader,
  id: string,
): Promise<(Widget & { role: AccessRole | null }) | undefined> {
  const [row] = await db.query<Widget & { role: AccessRole | null } & Record<string, unknown>>(
    `select ${WIDGET}, x.role from widgets w ${ENTRY} where w.account_id = $1 and w.id = $3 and ${SEEN}`,
    [account_id, user_id, id],
    'widget',
  );
  return row;
}

/** Entry that narrows a member's rights on one widget. Source: spec doc2 §2.13. */
export const WidgetAccess = z
  .object({
    id: z.uuid(),
    widget_id: z.uuid(),
    user_id: z.uuid(),
    user_name: z.string().nullable(),
    user_avatar: z.string().nullable(),
    role: z.enum(ACCESS_ROLES),
    granted_by: z.uuid().nullable(),
    created_at: dateTime,
  })
  .meta({ id: 'WidgetAccessEntry' });
export type WidgetAccess = z.output<typeof WidgetAccess>;

/** Entries of a widget, oldest first; with `user_id` that of one member. */
export const accessOf = (db: Queryable, widget_id: string, user_id: string | null = null): Promise<WidgetAccess[]> =>
  db.query<WidgetAccess & Record<string, unknown>>(
    `select x.id, x.widget_id, x.user_id, p.display_name as user_name, p.avatar_url as user_avatar, x.role, x.granted_by,
       x.created_at
     from widget_access x left join profiles p on p.user_id = x.user_id
     where x.widget_id = $1 and ($2::uuid is null or x.user_id = $2) order by x.created_at, x.user_id`,
    [widget_id, user_id],
    'widget-access',
  );

export const AccessCandidate = z
  .object({ id: z.uuid(), display_name: z.string().nullable(), avatar_url: z.string().nullable() })
  .meta({ id: 'WidgetAccessCandidate' });

/** Members without an entry whom one may bind: all but the owner. */
export const candidatesOf = (
  db: Queryable,
  account_id: string,
  widget_id: string,
): Promise<z.output<typeof AccessCandidate>[]> =>
  db.query<z.output<typeof AccessCandidate> & Record<string, unknown>>(
    `select m.user_id as id, p.display_name, p.avatar_url
     from account_members m join accounts a on a.id = m.account_id left join profiles p on p.user_id = m.user_id
     where m.account_id = $1 and a.owner_id <> m.user_id
       and not exists (select from widget_access x where x.widget_id = $2 and x.user_id = m.user_id)
     order by m.joined_at, m.user_id`,
    [account_id, widget_id],
    'widget-candidates',
  );
