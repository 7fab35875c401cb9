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

const nameless = (at: string): string => at.replace(/\{\w+\}/g, '{}');

/** Under which names an operation is served, as the specification would name it. */
export const namesOf = ({ kind, name, rest, graphql }: Operation): string[] => [
  ...(rest ? [nameless(`${rest.method} ${rest.path}`)] : []),
  ...(graphql === null ? [] : [`${kind === 'query' ? 'query' : 'mutation'} ${name}`]),
];

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

/** The words that guards are compared by, from a statement; null where it does not say enough. */
export function wordsOf({ guard }: StatedRow): string[] | null {
  const { feature, system_flag, permission, admin_permission, user_permission, context } = guard;
  const words = [
    ...(guard.public === true || guard.none ? ['public'] : []),
    ...(guard.first_party ? ['first_party'] : []),
    ...(context?.[0] === 'system_key' && context.length === 1 ? ['system_key'] : []),
    ...(context?.some((name) => name.startsWith('popout')) ? ['popout'] : []),
    ...[feature, system_flag].flatMap((flag) => (flag === undefined ? [] : [flag])),
    ...(permission === undefined ? [] : [`account ${permission}`]),
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
