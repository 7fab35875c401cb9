import type { Queryable } from '../../../engines/postgres/port';
import { textArray } from '../../../engines/postgres/port';
import { accountFlags } from '../account-flags';

/** A trigger of an enabled automation. */
export interface Trigger {
  account_id: string;
  automation_id: string;
  node_id: string;
  matches: readonly string[];
  config: Readonly<Record<string, unknown>>;
}

/** Triggers of this type, of accounts with the feature, that name one of these types of events or none. */
export async function triggersOf(
  db: Pick<Queryable, 'query'>,
  type: string,
  causes: readonly { account_id: string; type: string }[],
): Promise<Trigger[]> {
  if (causes.length === 0) return [];
  const rows = await db.query<Trigger & { config: string } & Record<string, unknown>>(
    `select t.account_id, t.automation_id, t.node_id, t.matches, t.config
     from automation_triggers t join automations a on a.id = t.automation_id and a.enabled
     where t.account_id = any($1::text[]::uuid[]) and t.type = $2
       and (t.matches = '{}' or t.matches && $3::text[])
     order by a.created_at, a.id, t.node_id`,
    [
      textArray([...new Set(causes.map(({ account_id }) => account_id))]),
      type,
      textArray([...new Set(causes.map((cause) => cause.type))]),
    ],
    'automation-triggers',
  );
  const accounts = rows.map(({ account_id }) => account_id);
  const isOn = await accountFlags(db, accounts, ['feature:automation']);
  const wanted = rows.filter(({ account_id }) => isOn('feature:automation', account_id));
  return wanted.map((row) => ({ ...row, config: JSON.parse(row.config) as Trigger['config'] }));
}
