import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Operation } from '../../access/operation';

/** What the specification asks of a caller; members that it does not name are not there. */
export interface StatedGuard {
  public?: true | string;
  none?: true;
  auth?: true;
  first_party?: true;
  feature?: string;
  system_flag?: string;
  permission?: string;
  /** Without the permission one's own. */
  own_free?: true;
  admin_permission?: string;
  user_permission?: string;
  context?: readonly string[];
  [other: string]: unknown;
}

/** One REST path or GraphQL field of the specification. */
export interface StatedRow {
  /** `GET /v1/api-keys`, `query userApiKeys`. */
  at: string;
  guard: StatedGuard;
  source: string;
}

const FILE = join(__dirname, '../fixtures/stated-guards.json');
export const STATED: readonly StatedRow[] = (JSON.parse(readFileSync(FILE, 'utf8')) as { rows: StatedRow[] }).rows;

/** What areas that are still to come will serve. */
export const NOT_YET_SERVED = JSON.parse(
  readFileSync(join(__dirname, '../fixtures/not-yet-served.json'), 'utf8'),
) as readonly string[];

const nameless = (at: string): string => at.replace(/\{\w+\}/g, '{}');

/** Under which names an operation is served, as the specification would name it. */
export const namesOf = ({ kind, name, rest, graphql }: Operation): string[] => [
  ...(rest ? [nameless(`${rest.method} ${rest.path}`)] : []),
  ...(graphql === null ? [] : [`${kind === 'query' ? 'query' : 'mutation'} ${name}`]),
];

/** Rows of the specification that nothing is served under; `paths` are what the server tells of in OpenAPI. */
export function unserved(operations: readonly Operation[], paths: readonly string[]): string[] {
  const served = new Set([...operations.flatMap(namesOf), ...paths.map(nameless)]);
  return STATED.map(({ at }) => at).filter((at) => !served.has(nameless(at)));
}

/** The rows that are about each operation. */
export function statedOf(operations: readonly Operation[]): Map<Operation, StatedRow[]> {
  const rows = new Map(STATED.map((row) => [nameless(row.at), row]));
  return new Map(
    operations.map((operation) => [
      operation,
      namesOf(operation).flatMap((name) => {
        const row = rows.get(name);
        return row === undefined ? [] : [row];
      }),
    ]),
  );
}

/** The words that guards are compared by, of all rows about one operation; null where none says enough. */
export function statedWords(rows: readonly StatedRow[]): string[] | null {
  const said = rows.flatMap((row) => wordsOf(row) ?? []);
  return rows.every((row) => wordsOf(row) === null) ? null : [...new Set(said)].sort();
}

function wordsOf({ guard }: StatedRow): string[] | null {
  const { feature, system_flag, permission, admin_permission, user_permission, context, own_free } = guard;
  const words = [
    ...(guard.public === true || guard.none ? ['public'] : []),
    ...(guard.first_party ? ['first_party'] : []),
    ...(context?.[0] === 'system_key' && context.length === 1 ? ['system_key'] : []),
    ...(context?.[0] === 'jwt' && context.length === 1 ? ['jwt'] : []),
    ...(context?.some((name) => name.startsWith('popout')) ? ['popout'] : []),
    ...[feature, system_flag].flatMap((flag) => (flag === undefined ? [] : [flag])),
    ...(permission === undefined || own_free ? [] : [`account ${permission}`]),
    ...(admin_permission === undefined ? [] : [`admin ${admin_permission}`]),
    ...(user_permission === undefined ? [] : [`user ${user_permission}`]),
  ];
  return words.length === 0 && !guard.auth ? null : words.sort();
}

/** The same words of what an operation declares. */
export const declaredWords = ({ guard }: Pick<Operation, 'guard'>): string[] =>
  guard
    .flatMap((one) => {
      switch (one.kind) {
        case 'feature':
          return [one.flag];
        case 'permission':
          return [`account ${one.permission}`];
        case 'admin_permission':
          return [`admin ${one.permission}`];
        case 'user_permission':
          return [`user ${one.permission}`];
        case 'authenticated':
        case 'account':
          return [];
        default:
          return [one.kind];
      }
    })
    .sort();
