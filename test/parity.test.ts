import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { CallerKind } from '../access/caller';
import type { Operation } from '../access/operation';
import { OPERATIONS } from '../bin/areas';
import { shapeOf, unwrap } from '../api/schema-shape';
import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS } from '../domain/permissions';
import { type Answered, type Asking, asking, membersOf } from './support/asking';
import { type SharedServer, sharedServer } from './support/shared-server';
import { declaredWords, NOT_YET_SERVED, STATED, statedOf, statedWords, unserved } from './support/stated-guards';

/**
 * Each of the ten contexts at each operation, on both protocols: who is let pass and how the others are refused, as the
 * specification says it and not as our guards do. Operations are walked as soon as they are declared, and compared with
 * the specification as soon as they are served under a name that it has.
 */
interface Asker {
  kind: CallerKind;
  account_id: string;
  headers: Record<string, string>;
  account: ReadonlySet<string>;
  admin: ReadonlySet<string>;
  user: ReadonlySet<string>;
  /** False: of an account that has no feature. */
  features: boolean;
}

/** How a caller is refused. Source: spec rulings, "guard messages". */
type Refusal = readonly [code: string, message: string];

/** Where rulings say more or something else than the rows of the specification, and why. */
const DECIDED: Readonly<Record<string, { words: readonly string[]; why: string }>> = {
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
function refusalOf(words: readonly string[], asker: Asker): Refusal | null {
  const { kind } = asker;
  const has = (word: string) => words.includes(word);
  const permissions = words.filter((word) => word.includes(' '));
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

const refused = ({ status, text }: Answered, protocol: 'REST' | 'GraphQL'): Refusal | null => {
  if (protocol === 'REST' && status < 400) return null;
  const body = JSON.parse(text);
  if (protocol === 'REST') return [body.error, body.message];
  return body.errors ? [body.errors[0].extensions?.code, body.errors[0].message] : null;
};

describe('each context at each operation', () => {
  let server: SharedServer;
  let ask: Asking;
  let account_id: string;
  const askers: Record<string, Asker> = {};

  beforeAll(async () => {
    server = await sharedServer();
    ask = await asking(server.base_url, example);
    const owner = await server.account();
    account_id = owner.account_id;
    const bare = await server.account();
    await server.operator.setAdminRole(owner.user_id, 'super-admin', true);
    const viewer = await server.member(account_id, 'viewer');
    const flags = [
      ...new Set(OPERATIONS.flatMap(({ guard }) => guard.flatMap((one) => (one.kind === 'feature' ? [one.flag] : [])))),
    ];
    await server.operator.setFeatures(bare.account_id, Object.fromEntries(flags.map((flag) => [flag, false])));

    const add = async (name: string, kind: CallerKind, token: string, features = true) => {
      const headers: Record<string, string> = token === '' ? {} : { authorization: `Bearer ${token}` };
      if (kind === 'system_key') headers['x-lumio-account'] = account_id;
      const { status, text } = await ask.send(headers, 'GET', '/v1/tokens/me');
      const {
        permissions = [],
        admin_permissions = [],
        user_permissions = [],
      } = status === 200 ? JSON.parse(text).data : {};
      const [account, admin, user] = [permissions, admin_permissions, user_permissions].map(
        (names) => new Set<string>(names),
      );
      askers[name] = {
        kind,
        account_id: name === 'an owner without features' ? bare.account_id : account_id,
        headers,
        account: account!,
        admin: admin!,
        user: user!,
        features,
      };
    };
    const made = async (path: string, permissions: readonly string[], member: 'key' | 'token') => {
      const { json } = await owner.door.rest('POST', path, { body: { label: 'walk', permissions } });
      return json.data[member] as string;
    };
    await add('nobody', 'anonymous', '');
    await add('an owner who administers', 'jwt', owner.access_token);
    await add('a viewer', 'jwt', viewer.access_token);
    await add('an owner without features', 'jwt', bare.access_token, false);
    for (const [name, permissions] of [
      ['every right', ACCOUNT_PERMISSIONS],
      ['one right', ['events:read']],
    ] as const) {
      await add(`a user's key with ${name}`, 'user_api_key', await made('/v1/api-keys', permissions, 'key'));
      await add(`a service key with ${name}`, 'service_key', await made('/v1/service-keys', permissions, 'key'));
      await add(`a popout token with ${name}`, 'popout', await made('/v1/tokens', permissions, 'token'));
    }
    const every = [...new Set([...ACCOUNT_PERMISSIONS, ...ADMIN_PERMISSIONS])];
    for (const permissions of [every, ['events:read']]) {
      const { key } = await server.operator.createSystemKey({ label: 'walk', permissions });
      await add(`a system key with ${permissions.length} rights`, 'system_key', key);
    }
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    for (const kind of ['overlay', 'shared_overlay', 'extension', 'widget'] as const) {
      const bound = { kind, account_id, resource_id: randomUUID(), channel: `overlay:${randomUUID()}`, expires_at };
      await add(`a token of kind ${kind}`, kind, (await server.operator.createBoundToken(bound)).token);
    }
  });

  const accountOf = ({ guard }: Operation) => guard.find((one) => one.kind === 'account')?.member;
  /** Members that what is asked gives other values than the usual ones. */
  let given: Record<string, unknown> = {};
  function example(operation: Operation, member: string): unknown {
    if (member in given) return given[member];
    return valueOf(member, shapeOf(operation.input, 'input')[member]!);
  }
  const accountGiven = (operation: Operation, asker: Asker) => {
    const account = accountOf(operation);
    return account === undefined ? {} : { [account]: asker.account_id };
  };
  /** For what stands behind `/{…}` in a path, the first of what the path before it lists. */
  async function idsFor({ rest }: Operation, asker: Asker): Promise<Record<string, unknown>> {
    const [list, member] = /^([^{]*)\/\{(\w+)\}/.exec(rest!.path)?.slice(1) ?? [];
    if (list === undefined) return {};
    const { status, text } = await ask.send(asker.headers, 'GET', list);
    const first = status === 200 ? (JSON.parse(text).data?.[0] ?? null) : null;
    return first === null ? {} : { [member!]: first[member!] ?? first.id };
  }
  const asked = async (
    operation: Operation,
    members: readonly string[],
    asker: Asker,
    values: Record<string, unknown>,
  ) => {
    given = { ...values, ...accountGiven(operation, asker) };
    // Both are put together before either is waited for: others set what is given meanwhile.
    const { rest, graphql } = operation;
    return Promise.all([
      ...(rest ? [ask.overRest(operation, members, asker.headers).then((one) => refused(one, 'REST'))] : []),
      ...(graphql === null
        ? []
        : [ask.overGraphql(operation, members, asker.headers).then((one) => refused(one, 'GraphQL'))]),
    ]);
  };

  test('what the specification has is served, or known to be still to come', async () => {
    const { paths } = JSON.parse((await ask.send({}, 'GET', '/v1/openapi.json')).text);
    const told = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    // Documents and their like are in no document.
    const beside = unserved(OPERATIONS, told).filter((at) => /^GET [^{]*$/.test(at));
    const answers = await Promise.all(beside.map((at) => ask.send({}, 'GET', at.slice('GET '.length))));
    told.push(...beside.filter((_at, index) => answers[index]!.status !== 404));
    const missing = unserved(OPERATIONS, told);
    expect(missing.filter((at) => !NOT_YET_SERVED.includes(at))).toEqual([]);
    expect(missing.length).toBeLessThan(STATED.length);
  });

  const DENIALS = /^(UNAUTHORIZED|FORBIDDEN|FEATURE_DISABLED)$/;
  test('is let pass or refused as the specification says, alike on both protocols', async () => {
    const faults: string[] = [];
    let cells = 0;
    for (const [operation, rows] of statedOf(OPERATIONS)) {
      const words = DECIDED[operation.name]?.words ?? statedWords(rows) ?? declaredWords(operation);
      const needed = membersOf(operation, 'needed');
      const look = async ([name, asker]: [string, Asker]) => {
        const expected = refusalOf(words, asker);
        // What a command would do is not done here.
        if (expected === null && operation.kind === 'command') return;
        const answers = await asked(operation, needed, asker, {});
        cells += answers.length;
        for (const answer of answers) {
          const right = expected === null ? !DENIALS.test(answer?.[0] ?? '') : String(answer) === String(expected);
          if (!right) faults.push(`${operation.name} for ${name}: ${String(answer)} instead of ${String(expected)}`);
        }
        if (new Set(answers.map(String)).size > 1)
          faults.push(`${operation.name} for ${name}: ${answers.join(' and ')}`);
      };
      await Promise.all(Object.entries(askers).map(look));
    }
    expect(faults).toEqual([]);
    expect(cells).toBeGreaterThan(OPERATIONS.length * 20);
  });

  test('is shown the same on both protocols, but for the case of names', async () => {
    const owner = askers['an owner who administers']!;
    const faults: string[] = [];
    let shown = 0;
    for (const operation of OPERATIONS.filter(
      ({ kind, rest, graphql }) => kind === 'query' && rest && graphql !== null,
    )) {
      const needed = membersOf(operation, 'needed');
      given = { ...(await idsFor(operation, owner)), ...accountGiven(operation, owner) };
      const [rest, graphql] = [
        await ask.overRest(operation, needed, owner.headers),
        await ask.overGraphql(operation, needed, owner.headers),
      ];
      const [one, other] = [restBody(rest), graphqlBody(operation, graphql)];
      if (one === null && other === null) continue;
      shown += 1;
      if (JSON.stringify(one) !== JSON.stringify(other))
        faults.push(`${operation.name}: ${JSON.stringify(one)} on REST, ${JSON.stringify(other)} on GraphQL`);
    }
    expect(faults).toEqual([]);
    expect(shown).toBeGreaterThan(20);
  });

  test('is answered alike what was done, or why it was not', async () => {
    const owner = askers['an owner who administers']!;
    const faults: string[] = [];
    let done = 0;
    // Who logs out asks for nothing more, what is deleted is asked for once, and what administrators do all would see.
    const commands = OPERATIONS.filter(
      ({ kind, name, rest, graphql, guard }) =>
        kind === 'command' &&
        rest &&
        graphql !== null &&
        !/^logout|^leave/.test(name) &&
        guard.every((one) => one.kind !== 'admin_permission'),
    );
    for (const operation of commands) {
      const needed = membersOf(operation, 'needed');
      const answers: [Refusal | null, unknown][] = [];
      for (const protocol of ['REST', 'GraphQL'] as const) {
        const ids = operation.rest!.method === 'DELETE' ? {} : await idsFor(operation, owner);
        given = { ...taken(needed), ...ids, ...accountGiven(operation, owner) };
        const answer = await (protocol === 'REST' ? ask.overRest : ask.overGraphql)(operation, needed, owner.headers);
        const refusal = refused(answer, protocol);
        answers.push([
          refusal,
          refusal !== null ? null : protocol === 'REST' ? restBody(answer) : graphqlBody(operation, answer),
        ]);
      }
      const [[one, shown], [other, told]] = answers as [[Refusal | null, unknown], [Refusal | null, unknown]];
      if (String(one) !== String(other))
        faults.push(`${operation.name}: ${String(one)} on REST, ${String(other)} on GraphQL`);
      if (one === null && other === null) {
        done += 1;
        if (!sameForm(shown, told) && !sameForm(shown, flattened(told)))
          faults.push(`${operation.name}: ${JSON.stringify(shown)} on REST, ${JSON.stringify(told)} on GraphQL`);
      }
    }
    expect(faults).toEqual([]);
    expect(done).toBeGreaterThan(10);
  });

  test('is told alike on both protocols what is wrong with an input', async () => {
    const faults: string[] = [];
    const owner = askers['an owner who administers']!;
    for (const operation of OPERATIONS.filter(({ rest, graphql }) => rest && graphql !== null)) {
      const shape = shapeOf(operation.input, 'input');
      const needed = membersOf(operation, 'needed');
      const texts = needed.filter((name) => isText(shape[name]!) && !operation.rest!.path.includes(`{${name}}`));
      const wrong: Record<string, unknown>[] = [];
      if ('limit' in shape) wrong.push({ limit: 0 });
      if (operation.kind === 'command' && texts.length > 0)
        wrong.push(Object.fromEntries(texts.map((name) => [name, tooLong(operation)])));
      for (const values of wrong) {
        const answers = await asked(operation, [...new Set([...needed, ...Object.keys(values)])], owner, values);
        const [one, other] = answers.map(String);
        if (one !== other || answers[0] === null) faults.push(`${operation.name}: ${one} on REST, ${other} on GraphQL`);
      }
    }
    expect(faults).toEqual([]);
  });
});

/** Longer than any text may be; in an address, longer than any there. */
const tooLong = ({ rest }: Operation) => 'x'.repeat(rest?.method === 'DELETE' ? 4_000 : 70_000);

const isText = (schema: z.ZodType): boolean => {
  const { def } = unwrap(schema, 'input');
  return def.type === 'string' && def.format === undefined;
};

/** A value that both protocols take as one of this kind. */
function valueOf(member: string, schema: z.ZodType): unknown {
  const { def } = unwrap(schema, 'input');
  switch (def.type) {
    case 'enum':
      return Object.values(def.entries!)[0];
    case 'literal':
      return def.values![0];
    case 'number':
    case 'int':
      return 1;
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'string':
      return /^id$|_id$/.test(member) || /uuid|guid/.test(def.format ?? '') ? NOBODY : 'made up';
    default:
      return {};
  }
}
const NOBODY = randomUUID();

const camel = (name: string) => name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());

/** A value with its members in one order and case, without those that are null. */
function plain(value: unknown, renamed: Readonly<Record<string, string>> = {}): unknown {
  if (Array.isArray(value)) return value.map((one) => plain(one, renamed));
  if (typeof value === 'string') return value.toLowerCase();
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(([, one]) => one !== null)
    .map(([name, one]) => [camel(renamed[name] ?? name), plain(one, renamed)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** GraphQL calls the type of an event so. Source: spec doc2 §4.3. */
const RENAMED = { eventType: 'type', event_type: 'type' };

/** GraphQL shows a new key beside its record, REST among the record's members. Source: spec doc2 §2.5. */
function flattened(value: unknown): unknown {
  const members = Object.entries(value as object);
  const records = members.filter(([, one]) => typeof one === 'object' && one !== null);
  if (records.length !== 1) return value;
  const [[name, record]] = records as [[string, object]];
  return plain({ ...record, ...Object.fromEntries(members.filter(([other]) => other !== name)) });
}

/** What is shown, without the envelope; null for a refusal. */
function restBody({ status, text }: Answered): unknown {
  if (status >= 300) return null;
  // What is gone is told by the status alone.
  if (text === '') return { success: true };
  const body = JSON.parse(text);
  return plain(body.data ?? body.items ?? body, RENAMED);
}
function graphqlBody({ name, graphql, pages }: Operation, { text }: Answered): unknown {
  const shown = JSON.parse(text).data?.[name] ?? null;
  if (shown === null) return null;
  return plain(pages !== undefined && !Array.isArray(shown) ? shown.items : shown, { ...RENAMED, ...graphql?.renamed });
}

let made = 0;
/** Values that commands take, and that nothing else has. */
function taken(members: readonly string[]): Record<string, unknown> {
  made += 1;
  const values: Record<string, unknown> = {
    permissions: ['events:read'],
    name: `walk ${made}`,
    label: `walk ${made}`,
    slug: `walk-${made}`,
    redirect_uris: ['https://example.org/back'],
    scopes: ['events:read'],
    event_type: 'kick:follower',
    code_challenge: 'x'.repeat(43),
  };
  return Object.fromEntries(members.flatMap((name) => (name in values ? [[name, values[name]]] : [])));
}

/** The same members with values of the same kinds. */
function sameForm(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === 0 || other.length === 0 || sameForm(one[0], other[0]);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return typeof one === typeof other;
  const [names, others] = [Object.keys(one), Object.keys(other)];
  return (
    names.join() === others.join() && names.every((name) => sameForm((one as never)[name], (other as never)[name]))
  );
}
