import type { AlertPage, AlertState } from '../../domain/studio/alert-controls';
import { drawnEvent, type DrawnEvent } from '../../domain/studio/drawn-events';
import { ALERT_BOX } from '../../domain/studio/widget-types';
import type { Queryable } from '../../engines/postgres/port';
import { parsedJson } from '../../lib/json/paths';

interface Editor {
  account_id: string;
  /** Null of keys of the account, which no entry binds. */
  user_id: string | null;
  edits_widgets: boolean;
}
type Controlled = AlertPage & AlertState;

/** An entry that leaves its user reading, or hides the page from them. */
const bound = (kind: AlertPage['kind']): string => `exists (
  select from ${kind}_access x join accounts a on a.id = x.account_id
  where x.${kind}_id = p.id and x.user_id = $2 and a.owner_id <> $2 and x.role in ('viewer', 'none'))`;

/** Pages with alerts that the editor may change: all overlays and alert widgets, or one overlay. */
export const alertPages = (
  db: Queryable,
  { account_id, user_id, edits_widgets }: Editor,
  overlay_id: string | null,
): Promise<Controlled[]> =>
  db.query<Controlled & Record<string, unknown>>(
    `select 'overlay' as kind, p.id as page_id, 'overlay:' || p.key as channel, p.alerts_paused as paused,
       p.alerts_muted as muted
     from overlays p where p.account_id = $1 and ($3::uuid is null or p.id = $3) and not ${bound('overlay')}
     union all
     select 'widget', p.id, 'widget:' || p.id, p.alerts_paused, p.alerts_muted
     from widgets p where p.account_id = $1 and $3::uuid is null and $4 and p.widget_type = $5
       and not ${bound('widget')}`,
    [account_id, user_id, overlay_id, edits_widgets, ALERT_BOX],
    'alert-pages',
  );

/** An event of the account's log as pages draw it, null of one that none draws; undefined where the log has none. */
export async function loggedEvent(
  db: Queryable,
  account_id: string,
  id: string,
): Promise<DrawnEvent | null | undefined> {
  const [row] = await db.query<{ id: string; type: string; platform: string; raw: string; created_at: string }>(
    'select id, type, platform, raw, created_at from platform_event_logs where id = $1 and account_id = $2',
    [id, account_id],
    'page-logged-event',
  );
  if (row === undefined) return undefined;
  const { raw, ...event } = row;
  return drawnEvent({ ...event, payload: parsedJson(raw) });
}
