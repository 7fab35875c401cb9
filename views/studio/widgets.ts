import { z } from 'zod';
import type { AccessRole } from '../../domain/studio/access-entries';
import { DRAWN_TYPES, WIDGET_TYPES } from '../../domain/studio/widget-types';
import type { Queryable } from '../../engines/postgres/port';
import { candidateMembers, entryMembers } from './access-entries';

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
  .object({ id: z.uuid(), widget_id: z.uuid(), ...entryMembers })
  .meta({ id: 'WidgetAccessEntry' });
export const AccessCandidate = z.object(candidateMembers).meta({ id: 'WidgetAccessCandidate' });
