import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Operation } from '../../app/operation';
import { OPERATIONS } from '../../bin/areas';
import { shapeOf, unwrap } from '../../api/openapi/schema-shape';
import { flattened, graphqlBody, type Refusal, refused, restBody, sameForm } from '../support/alike';
import { type Asker, everyAsker } from '../support/askers';
import { type Asking, asking, membersOf } from '../support/asking';
import { type SharedServer, sharedServer } from '../support/shared-server';
import { eventually } from '../support/vendor-cloud';
import {
  DECIDED,
  declaredWords,
  NOT_YET_SERVED,
  refusalOf,
  STATED,
  statedOf,
  statedWords,
  unserved,
} from '../support/stated-guards';

/**
 * Each of the ten contexts at each operation, on both protocols: who is let pass and how the others are refused, as the
 * specification says it, or where it is silent as the operation's own guard does. Operations are walked as soon as they
 * are declared, and compared with the specification as soon as they are served under a name that it has.
 */
describe('each context at each operation', () => {
  let server: SharedServer;
  let ask: Asking;
  let askers: Record<string, Asker>;

  beforeAll(async () => {
    server = await sharedServer();
    ask = await asking(server.base_url, example);
  });
  // A walk of all operations is more than one credential may ask in a minute: it is done in halves.
  beforeEach(async () => {
    askers = await everyAsker(server, ask);
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
    return first === null ? {} : { [member!]: first[member!] ?? first.id ?? first.name };
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

  const takesBody = ({ rest, takes }: Operation) =>
    rest !== null && rest !== undefined && !rest.oauth && !takes && !['GET', 'DELETE'].includes(rest.method);
  /** The same over REST with a member that no input has. */
  const askedWrongly = async (operation: Operation, members: readonly string[], asker: Asker) => {
    given = accountGiven(operation, asker);
    const { method, path } = operation.rest!;
    const url = path.replace(/\{(\w+)\}/g, (_match, name: string) =>
      encodeURIComponent(String(example(operation, name))),
    );
    return [refused(await ask.send(asker.headers, method, url, { of_no_input: members.length }), 'REST')];
  };

  test('what the specification has is served, or known to be still to come', async () => {
    const { paths } = JSON.parse((await ask.send({}, 'GET', '/v1/openapi.json')).text);
    const told = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    // Documents and their like are in no document, nor are payments' webhooks.
    const beside = unserved(OPERATIONS, told).filter((at) => /^(GET|POST \/v1\/webhooks)[^{]*$/.test(at));
    const answers = await Promise.all(
      beside.map((at) => ask.send({}, ...(at.split(' ') as [method: string, path: string]))),
    );
    told.push(...beside.filter((_at, index) => answers[index]!.status !== 404));
    const missing = unserved(OPERATIONS, told);
    expect(missing.sort()).toEqual([...NOT_YET_SERVED, ON_A_LISTENER_OF_ITS_OWN].sort());
    expect(missing.length).toBeLessThan(STATED.length);
  });

  /** All browser tokens of the account share a bucket, which the operations together may empty. */
  const withinLimits = (answers: () => Promise<(Refusal | null)[]>) =>
    eventually(async () => {
      const found = await answers();
      return found.some((answer) => answer?.[0] === 'RATE_LIMIT_EXCEEDED') ? undefined : found;
    }, 'units of the rate limit');
  /** A refusal that the operation declares comes behind its guards: an unknown link is 401. */
  const isOwnRefusal = ({ errors }: Operation, answer: Refusal | null) =>
    Object.values(errors).some(({ code, text }) => code === answer?.[0] && text === answer[1]);
  const DENIALS = /^(UNAUTHORIZED|FORBIDDEN|FEATURE_DISABLED)$/;
  const HALVES = [0, 1];
  test.each(HALVES)('is let pass or refused as specified, alike on both protocols (half %i)', async (half) => {
    const faults: string[] = [];
    let cells = 0;
    let wrongly_asked = 0;
    const walked = [...statedOf(OPERATIONS)].filter((_operation, index) => index % HALVES.length === half);
    for (const [operation, rows] of walked) {
      const words = DECIDED[operation.name]?.words ?? statedWords(rows) ?? declaredWords(operation);
      const needed = membersOf(operation, 'needed');
      const look = async ([name, asker]: [string, Asker]) => {
        const expected = refusalOf(words, asker);
        // What a command would do is not done here: its input is refused, which is judged behind the guards.
        const let_in = expected === null && operation.kind === 'command';
        if (let_in && !takesBody(operation)) return;
        const answers = await withinLimits(() =>
          let_in ? askedWrongly(operation, needed, asker) : asked(operation, needed, asker, {}),
        );
        if (let_in) wrongly_asked += 1;
        if (let_in && answers.includes(null)) faults.push(`${operation.name} for ${name}: took an unknown member`);
        cells += answers.length;
        for (const answer of answers) {
          const right =
            expected === null
              ? !DENIALS.test(answer?.[0] ?? '') || isOwnRefusal(operation, answer)
              : String(answer) === String(expected);
          if (!right) faults.push(`${operation.name} for ${name}: ${String(answer)} instead of ${String(expected)}`);
        }
        if (new Set(answers.map(String)).size > 1)
          faults.push(`${operation.name} for ${name}: ${answers.join(' and ')}`);
      };
      await Promise.all(Object.entries(askers).map(look));
    }
    expect(faults).toEqual([]);
    expect(cells).toBeGreaterThan(walked.length * 20);
    expect(wrongly_asked).toBeGreaterThan(walked.length);
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
    const limits = [{ name: 'max_overlays', value: 100 }];
    const at = `/v1/admin/accounts/${owner.account_id}/overrides`;
    expect((await ask.send(owner.headers, 'PATCH', at, { features: [], limits })).status).toBe(200);
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
        // A cooldown is of one person.
        const person = operation.name === 'refreshPlatformUserProfile' ? { platform_user_id: randomUUID() } : {};
        const module_name = operation.name === 'deleteBotModule' ? { module_name: 'timed_messages' } : {};
        given = { ...taken(needed), ...ids, ...person, ...module_name, ...accountGiven(operation, owner) };
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
/** Not on the public origin (spec doc2 §4.2). */
const ON_A_LISTENER_OF_ITS_OWN = 'GET /metrics';

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
