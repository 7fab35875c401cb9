import { z } from 'zod';
import type { AuditEntry, Sealed } from '../../domain/audit/audit-log';
import type { JsonObject } from '../../lib/json/json';
import { isUuid } from '../../lib/hash/uuid';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import type { Queryable } from '../../engines/postgres/port';
import { digestsOf } from './audit-hashes';

const said = z.record(z.string(), z.unknown()).nullable().meta({ graphql: 'JSON' });

/** An entry as answers show it. Source: spec rulings, "audit entry". */
export const AuditLogEntry = z
  .object({
    id: z.uuid().describe('Id of the domain event'),
    account_id: z.uuid().nullable(),
    action: z.string(),
    actor: z
      .object({
        kind: z.string().nullable().describe('What they called with, or `service`; null where nobody did'),
        id: z.string().nullable().describe('The user, or the key where there is none'),
        label: z.string().nullable().describe('What they are called now; null once erased'),
        acts_for: z.string().nullable().describe('Member that the popout token acts for; null where that is its maker'),
      })
      .meta({ id: 'AuditLogActor' }),
    target: z.object({ kind: z.string(), id: z.string() }).meta({ id: 'AuditLogTarget' }),
    before: said.describe('The same members as they were; null where nothing was known'),
    after: said.describe('Personal values are null once the person was erased'),
    ip: z.string().nullable().describe('Null too where somebody else than the account or the user acted'),
    created_at: z.iso.datetime(),
    hash: z.string().describe('Hex SHA-256 over the hash before it and this entry'),
  })
  .meta({ id: 'AuditLogEntry' });
export type AuditLogEntry = z.output<typeof AuditLogEntry>;

/** A row of the log. */
export interface AuditRow {
  chain: string;
  number: number;
  hash: string;
  id: string;
  account_id: string | null;
  action: string;
  actor_kind: string | null;
  actor_id: string | null;
  acts_for: string | null;
  target_kind: string;
  target_id: string;
  type: string;
  position: string;
  created_at: string;
  /** JSON, as it is in the hash. */
  before: string | null;
  after: string | null;
  personal: string;
}

export const AUDIT_COLUMNS =
  'chain, number, hash, id, account_id, action, actor_kind, actor_id, acts_for, target_kind, target_id, type, ' +
  'position, created_at, before, after, personal';

/** Dependencies for reading entries. */
export interface AuditReading {
  db: Queryable;
  texts: PersonalTexts;
}

/** Entry of a row in the form that was hashed. */
export function entryOfRow(row: AuditRow): AuditEntry {
  const { id, chain, account_id, action, type, position, created_at } = row;
  return {
    ...{ id, chain, account_id, action, type, position, created_at },
    actor: {
      kind: row.actor_kind,
      id: row.actor_id,
      ...(row.acts_for !== null && { acts_for: row.acts_for }),
    },
    target: { kind: row.target_kind, id: row.target_id },
    before: members(row.before),
    after: members(row.after),
    personal: personalOf(row),
  };
}

/** The digests that stand for a row's personal values in its hash. */
export const digestsOfRow = (row: AuditRow): Record<string, string> => digestsOf({ personal: personalOf(row) });

/** Owner of the log that is read. The address of an operator is visible to operators only. */
export type Viewer = { account_id: string } | { user_id: string } | 'operator';

/** Converts rows to entries. Personal values are decrypted where the key exists, in a few queries per page. */
export async function toEntryViews(
  reading: AuditReading,
  rows: readonly AuditRow[],
  viewer: Viewer,
): Promise<AuditLogEntry[]> {
  const sealed = rows.map((row) => Object.entries(personalOf(row)));
  const [labels, own, texts] = await Promise.all([
    labelsOf(reading.db, rows, viewer),
    ownActors(reading.db, rows, viewer),
    reading.texts.openAll(
      sealed.flat().map(([, { sealed: text, key, bound }]) => ({ sealed: text, key_id: key, context: bound })),
    ),
  ]);
  let next = 0;
  return rows.map((row, index) => {
    const { id, account_id, action, created_at, hash } = row;
    const shown: AuditLogEntry = {
      ...{ id, account_id, action, created_at, hash },
      actor: {
        kind: row.actor_kind,
        id: row.actor_id,
        label: labels.get(actorKey(row)) ?? null,
        acts_for: row.acts_for,
      },
      target: { kind: row.target_kind, id: row.target_id },
      before: members(row.before),
      after: members(row.after),
      ip: null,
    };
    for (const [place] of sealed[index]!) {
      const text = texts[next]!;
      next += 1;
      if (text === null) continue;
      if (place === 'ip') shown.ip = own(row) ? text : null;
      else setMember(shown, place, JSON.parse(text));
    }
    return shown;
  });
}

const personalOf = ({ personal }: AuditRow) => (JSON.parse(personal) ?? {}) as Record<string, Sealed>;
const members = (json: string | null) => (json === null ? null : (JSON.parse(json) as JsonObject));

/** @param place `before.<member>` or `after.<member>` */
function setMember(entry: AuditLogEntry, place: string, value: unknown): void {
  const dot = place.indexOf('.');
  const into = place.slice(0, dot) === 'before' ? entry.before : entry.after;
  if (into !== null) into[place.slice(dot + 1)] = value;
}

/**
 * True for actors whose address the viewer may see: the user, present and former members of the account, and its keys.
 */
async function ownActors(
  db: Queryable,
  rows: readonly AuditRow[],
  viewer: Viewer,
): Promise<(row: AuditRow) => boolean> {
  if (viewer === 'operator') return () => true;
  if ('user_id' in viewer) return ({ actor_id }) => actor_id === viewer.user_id;
  const ids = userIds(rows);
  const members = await db.query<{ id: string }>(
    `select user_id::text as id from account_members where account_id = $1 and user_id = any($2::uuid[])
     union select target_id from audit_log
     where chain = 'account:' || $1::text and target_kind = 'member' and target_id = any($2::text[])`,
    [viewer.account_id, ids],
    'audit-log-members',
  );
  const people = new Set(members.map(({ id }) => id));
  const ours = ['service_key', 'popout'];
  return ({ actor_kind, actor_id }) => ours.includes(actor_kind ?? '') || people.has(actor_id ?? '');
}

const userIds = (rows: readonly AuditRow[]): string[] => [
  ...new Set(rows.flatMap(({ actor_id }) => (actor_id !== null && isUuid(actor_id) ? [actor_id] : []))),
];

const actorKey = ({ actor_kind, actor_id }: AuditRow): string => `${actor_kind} ${actor_id}`;

/**
 * Labels of the actors: the display name of a user, the last label of a key, the name of a service. Labels of the
 * installation's keys are visible to operators only.
 */
async function labelsOf(db: Queryable, rows: readonly AuditRow[], viewer: Viewer): Promise<Map<string, string>> {
  const actors = [...new Map(rows.map((row) => [actorKey(row), row])).values()];
  const ids = userIds(rows);
  const labels = new Map<string, string>();
  for (const row of actors) if (row.actor_kind === 'service' && row.actor_id) labels.set(actorKey(row), row.actor_id);
  if (ids.length === 0) return labels;
  const found = await db.query<{ kind: string | null; id: string; label: string | null }>(
    `select null as kind, user_id::text as id, display_name as label from profiles where user_id = any($1::uuid[])
     union all
     select kind, id, coalesce(members ->> 'label', members ->> 'name')
     from audit_log_targets where chain = any($2) and kind = any($3) and id = any($1::text[]) and part = ''`,
    [
      ids,
      [...new Set([...(viewer === 'operator' ? ['installation'] : []), ...rows.map(({ chain }) => chain)])],
      [...new Set(actors.map(({ actor_kind }) => actor_kind))],
    ],
    'audit-log-labels',
  );
  for (const row of actors) {
    const own = found.filter(({ id }) => id === row.actor_id);
    const label = (own.find(({ kind }) => kind === null) ?? own.find(({ kind }) => kind === row.actor_kind))?.label;
    if (label) labels.set(actorKey(row), label);
  }
  return labels;
}
