import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallerKind } from '../../access/authentication/caller';
import type { Operation } from '../../app/operation';
import type { Refusal } from './alike';
import type { Asker } from './askers';
import { nameless, namesOf } from './operation-names';

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
  /** By the value of `action`. */
  permission_by_action?: Readonly<Record<string, string>>;
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

/** Rows of the specification that nothing is served under; `paths` are what the server tells of in OpenAPI. */
export function unserved(operations: readonly Operation[], paths: readonly string[]): string[] {
  const served = new Set([...operations.flatMap(namesOf), ...paths.map(nameless)]);
  // A row may name a family of fields: `query channelHistory*`.
  const isServed = (at: string) =>
    at.endsWith('*') ? [...served].some((name) => name.startsWith(at.slice(0, -1))) : served.has(nameless(at));
  return STATED.map(({ at }) => at).filter((at) => !isServed(at));
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
  const by_action = Object.values(guard.permission_by_action ?? {});
  const words = [
    ...(guard.public === true || guard.none ? ['public'] : []),
    ...(guard.first_party ? ['first_party'] : []),
    ...(context?.[0] === 'system_key' && context.length === 1 ? ['system_key'] : []),
    ...(context?.[0] === 'jwt' && context.length === 1 ? ['jwt'] : []),
    ...(context?.some((name) => name.startsWith('popout')) ? ['popout'] : []),
    ...[feature, system_flag].flatMap((flag) => (flag === undefined ? [] : [flag])),
    ...(permission === undefined || own_free ? [] : [`account ${permission}`]),
    ...by_action.map((name) => `account ${name} by value`),
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
        case 'permission_by':
          return Object.values(one.permissions).map((name) => `account ${name} by value`);
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

/** Where rulings say more or something else than the rows of the specification, and why. */
export const DECIDED: Readonly<Record<string, { words: readonly string[]; why: string }>> = {
  createAccount: {
    words: ['first_party'],
    why: 'the switch is judged with what an operator set for the user (doc2 2.2)',
  },
  dissolveAccount: {
    words: ['account account:delete', 'first_party'],
    why: 'doc1 5.10 gives account:delete to owners alone',
  },
  authorizeOauthClient: { words: ['first_party'], why: "ruling OAuth clients: called with the user's session" },
  oauthAuthorizationRequest: {
    words: ['first_party', 'jwt'],
    why: "ruling OAuth clients: called with the user's session",
  },
};

const FIRST_PARTY: ReadonlySet<CallerKind> = new Set(['jwt', 'user_api_key']);
const WITHOUT_RIGHTS: ReadonlySet<CallerKind> = new Set(['overlay', 'shared_overlay', 'extension', 'widget']);

/** What the specification answers; null where it lets pass. Source: spec rulings, "order of checks". */
export function refusalOf(words: readonly string[], asker: Asker): Refusal | null {
  const { kind } = asker;
  const has = (word: string) => words.includes(word);
  // The walk gives the first value of a member that chooses a permission.
  const [first_value] = words.filter((word) => word.endsWith(' by value'));
  const permissions = words.filter(
    (word) => word.includes(' ') && (word === first_value || !word.endsWith(' by value')),
  );
  if (has('public')) return null;
  if (kind === 'anonymous') return ['UNAUTHORIZED', 'Authentication required'];
  if (has('first_party') && !FIRST_PARTY.has(kind)) return ['FORBIDDEN', 'This action requires a logged-in user'];
  if (has('jwt') && kind !== 'jwt') return ['FORBIDDEN', 'This action requires a logged-in user'];
  if (has('system_key') && kind !== 'system_key') return ['FORBIDDEN', 'This action requires a system key'];
  if (has('popout') && kind !== 'popout') return ['FORBIDDEN', 'This action requires a popout session'];
  if (permissions.length === 0 && WITHOUT_RIGHTS.has(kind))
    return ['FORBIDDEN', 'This action requires a logged-in user'];
  const flag = words.find((word) => /^feature:\w+$/.test(word));
  if (flag !== undefined && !asker.features) return ['FEATURE_DISABLED', `Feature not enabled: ${flag}`];
  for (const [scope, name] of permissions.map((word) => word.split(' ') as ['account' | 'admin' | 'user', string])) {
    if (!asker[scope].has(name)) return ['FORBIDDEN', `Missing permission: ${name}`];
  }
  return null;
}
