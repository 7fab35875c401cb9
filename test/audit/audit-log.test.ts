import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import type { AuditLogEntry } from '../../views/audit/audit-log';
import type { Operation } from '../../app/operation';
import { writeProfile } from '../../services/identity/profiles';
import { EVENTS } from '../../bin/areas';
import { auditDeclarationError, logOf, targetOf } from '../../domain/audit/audit-entries';
import { attributedEventStore } from '../../engines/event-store/decorators/attributed';
import type { EventStore, Metadata } from '../../engines/event-store/port';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createSealing, sealedEventStore } from '../../engines/event-store/decorators/sealing';
import { versionedEventStore } from '../../engines/event-store/decorators/versioned';
import { catalogue, event, type EventDeclaration, events, subject } from '../../kernel/event';
import type { JsonObject } from '../../lib/json/json';
import { createUpcasters, upcastersOf } from '../../kernel/upcasters';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { verifyAuditLog } from '../../maintenance/audit/verify';
import { auditLog } from '../../projections/audit/audit-log';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import * as operations from '../../read-api/audit/audit-log';
import { type TestDatabase, testDatabase } from '../support/database';
import { callerOf, type DeclaredApi, serveDeclared } from '../support/declared-api';
import { engines, type Engines, runtimeOf, until } from '../support/projections';
import { runLumio } from '../support/server';
import { sharedServer } from '../support/shared-server';

const id = z.uuid();
const GUESTS = events({
  'guest:invited': event(
    { guest_id: id, account_id: id, user_id: id, email: z.string().nullable(), seat: z.int(), key_hash: z.string() },
    { personal: { email: subject('user', 'user_id') } },
  ),
  'guest:renamed': event(
    { guest_id: id, account_id: id, user_id: id, email: z.string().nullable() },
    { personal: { email: subject('user', 'user_id') } },
  ),
  'guest:seated': event({ guest_id: id, account_id: id, seat: z.int() }, { audit: { action: 'account:guest_seated' } }),
  'guest:removed': event({ guest_id: id, account_id: id, why: z.string() }),
  'person:badge_assigned': event(
    { user_id: id, badge: z.string() },
    { audit: { target: ['user', 'user_id'], by: ['badge'] } },
  ),
  'person:badge_removed': event(
    { user_id: id, badge: z.string() },
    { audit: { target: ['user', 'user_id'], by: ['badge'] } },
  ),
  'switch:turned': event({ flag: z.string(), on: z.boolean() }, { audit: { target: ['switch', 'flag'] } }),
  'claim:made': event({ value: z.string() }, { audit: null }),
});
const DECLARED = catalogue([GUESTS]);
type Type = keyof typeof GUESTS.declared;

describe('declarations', () => {
  test('every event type makes an entry that says whom it is about', () => {
    const faults = [...EVENTS].flatMap(([type, declaration]) => {
      const fault = auditDeclarationError(type, declaration);
      return fault === null ? [] : [`${type}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });

  test('all that is said of one kind of target is in one log', () => {
    const logs = new Map<string, Set<string>>();
    for (const [type, declaration] of EVENTS) {
      if (declaration.audit === null) continue;
      const [kind] = targetOf(type, declaration);
      logs.set(kind, (logs.get(kind) ?? new Set()).add(logOf(declaration)));
    }
    expect([...logs].filter(([, found]) => found.size > 1)).toEqual([]);
  });

  test('what an entry would not say well is seen', () => {
    const personal = { name: subject('user', 'user_id') };
    const faulty = {
      'a thing without its id': event({ user_id: id }),
      'a personal target': event({ name: z.string().nullable() }, { personal, audit: { target: ['name', 'name'] } }),
      'a member that is not there': event({ thing_id: id }, { audit: { omit: ['other'] } }),
    };
    for (const declaration of Object.values(faulty))
      expect(auditDeclarationError('thing:made', declaration)).not.toBeNull();
    expect(auditDeclarationError('thing:part_added', event({ thing_id: id, part: z.string() }))).toContain(
      'what is added?',
    );
    for (const [type, declaration] of DECLARED)
      expect([type, auditDeclarationError(type, declaration)]).toEqual([type, null]);
  });
});

describe('the read model', () => {
  let t: TestDatabase;
  let on: Engines;
  let store: EventStore;
  let api: DeclaredApi;
  const projection = auditLog(DECLARED);
  let live: unknown[];
  beforeAll(async () => {
    t = await testDatabase(10);
    on = await engines(t.db);
    store = attributedEventStore(sealedEventStore(on.events, createSealing(DECLARED, on.subject_keys)));
    on = { ...on, events: store };
    await writeProfile(t.db, { user_id: actor_id, display_name: 'Grace', avatar_url: null, email: null });
    await t.db.query(
      `insert into account_members (account_id, user_id, id, role_id, joined_at) values ($1, $2, $1, $1, now())`,
      [account_id, actor_id],
    );
    await story();
    await projected();
    live = await kept();
    const texts = createPersonalTexts(on.subject_keys);
    const permissions = new Set(['audit-log:read']);
    api = await serveDeclared(
      OPERATIONS,
      { db: t.db, texts },
      {
        owner: callerOf({ account_id, permissions }),
        stranger: callerOf({ account_id: uuid(), permissions }),
        powerless: callerOf({ account_id, admin_permissions: permissions }),
        admin: callerOf({ admin_permissions: permissions }),
        user: callerOf({ user_id }),
        key: callerOf({ kind: 'service_key', user_id: null, account_id, permissions }),
      },
    );
  });
  afterAll(async () => {
    await api?.close();
    await on?.close();
    await t?.drop();
  });

  const [account_id, guest_id, user_id, actor_id] = [uuid(), uuid(), uuid(), uuid()];
  const by: Metadata = { actor_kind: 'jwt', actor_id, correlation_id: 'c', ip: '203.0.113.7' };
  async function append(type: Type, data: JsonObject, metadata: Metadata = by) {
    const one = { id: uuid(), type, data };
    await store.append([{ stream: `s-${uuid()}`, expected: 'none', events: [one] }], metadata);
    return one.id;
  }
  async function story() {
    const guest = { guest_id, account_id };
    await append('guest:invited', { ...guest, user_id, email: 'ada@example.org', seat: 1, key_hash: 'f'.repeat(64) });
    await append('guest:seated', { ...guest, seat: 2 }, { ...by, actor_id: uuid() });
    await append('guest:renamed', { ...guest, user_id, email: 'countess@example.org' });
    await append('person:badge_assigned', { user_id, badge: 'gold' });
    await append('person:badge_assigned', { user_id, badge: 'iron' });
    await append('switch:turned', { flag: 'lights', on: true }, { actor_kind: 'system_key', credential_id: 'ops' });
    await append('claim:made', { value: 'x' });
    await append('person:badge_removed', { user_id, badge: 'gold' });
    await append('switch:turned', { flag: 'lights', on: false }, { actor_kind: 'system_key', credential_id: 'ops' });
    await append('guest:removed', { ...guest, why: 'late' });
  }
  const rows = () => t.db.query('select * from audit_log order by chain collate "C", number');
  const kept = async () => [
    await rows(),
    await t.db.query('select * from audit_log_heads order by chain collate "C"'),
    await t.db.query('select * from audit_log_targets order by chain collate "C", kind, id, part'),
  ];
  async function projected(batch_events = 500) {
    const runtime = runtimeOf(t.db, on, [projection], { batch_events });
    await runtime.start();
    await until(async () => (await rows()).length === 9);
    await runtime.stop();
  }

  test('an entry says what was done to what, by whom, and what was the case before', async () => {
    const found = (await rows()).map(({ chain, number, action, target_kind, target_id, before, after, personal }) => ({
      entry: [
        chain,
        number,
        action,
        `${target_kind}:${target_id}`,
        JSON.parse(before),
        JSON.parse(after),
        Object.keys(JSON.parse(personal)).sort(),
      ],
    }));
    const account = `account:${account_id}`;
    const [guest, user] = [`guest:${guest_id}`, `user:${user_id}`];
    expect(found.map(({ entry }) => entry)).toEqual([
      [account, 1, 'guest:invited', guest, null, { user_id, email: null, seat: 1 }, ['after.email', 'ip']],
      [account, 2, 'account:guest_seated', guest, { seat: 1 }, { seat: 2 }, ['ip']],
      [
        account,
        3,
        'guest:renamed',
        guest,
        { user_id, email: null },
        { user_id, email: null },
        ['after.email', 'before.email', 'ip'],
      ],
      [account, 4, 'guest:removed', guest, { user_id, email: null, seat: 2 }, { why: 'late' }, ['before.email', 'ip']],
      ['installation', 1, 'switch:turned', 'switch:lights', null, { on: true }, []],
      ['installation', 2, 'switch:turned', 'switch:lights', { on: true }, { on: false }, []],
      [user, 1, 'person:badge_assigned', user, null, { badge: 'gold' }, ['ip']],
      [user, 2, 'person:badge_assigned', user, null, { badge: 'iron' }, ['ip']],
      [user, 3, 'person:badge_removed', user, { badge: 'gold' }, null, ['ip']],
    ]);
    expect(JSON.stringify(await rows())).not.toMatch(/example\.org|203\.0\.113|f{64}/);
  });

  const OPERATIONS = Object.values(operations) as Operation[];
  const ENTRY =
    'id accountId action actor { kind id label acts_for: actsFor } target { kind id } before after ip createdAt hash';
  /** All entries, page by page, over one of the protocols. */
  async function walked(path: string, field: string, as: string, filter: Record<string, string> = {}) {
    const over = { rest: [] as JsonObject[], gql: [] as JsonObject[] };
    let cursor: string | null = null;
    do {
      const query = new URLSearchParams({ ...filter, limit: '2', ...(cursor === null ? {} : { cursor }) });
      const { status, json } = await api.rest('GET', `${path}?${query.toString()}`, { as });
      expect([status, json]).toEqual([200, expect.anything()]);
      over.rest.push(...json.data);
      cursor = json._meta.next_cursor;
    } while (cursor !== null);
    const given = Object.entries(filter).map(([name, value]) => `, ${camel(name)}: ${JSON.stringify(value)}`);
    do {
      const after: string = cursor === null ? '' : `, cursor: "${cursor as string}"`;
      const { json } = await api.gql(
        `{ ${field}(limit: 2${after}${given.join('')}) { items { ${ENTRY} } nextCursor } }`,
        { as },
      );
      expect(json.errors).toBeUndefined();
      over.gql.push(...json.data[field].items);
      cursor = json.data[field].nextCursor;
    } while (cursor !== null);
    expect(over.gql).toEqual(
      over.rest.map(({ account_id, created_at, ...one }) => ({ ...one, accountId: account_id, createdAt: created_at })),
    );
    return over.rest;
  }
  const account = (as: string, filter = {}) => walked('/v1/account/audit-log', 'accountAuditLog', as, filter);
  const actions = (entries: readonly JsonObject[]) => entries.map(({ action }) => action);

  test('is read page by page, on both protocols, by account, by user and by administrators', async () => {
    const own = await account('owner');
    expect(own[1]).toEqual({
      id: expect.any(String),
      account_id,
      action: 'guest:renamed',
      actor: { kind: 'jwt', id: actor_id, label: 'Grace', acts_for: null },
      target: { kind: 'guest', id: guest_id },
      before: { user_id, email: 'ada@example.org' },
      after: { user_id, email: 'countess@example.org' },
      ip: '203.0.113.7',
      created_at: expect.any(String),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(actions(own)).toEqual(['guest:removed', 'guest:renamed', 'account:guest_seated', 'guest:invited']);
    expect(await account('stranger')).toEqual([]);
    const mine = await walked('/v1/me/audit-log', 'meAuditLog', 'user');
    expect(actions(mine)).toEqual(['person:badge_removed', 'person:badge_assigned', 'person:badge_assigned']);
    // Another's address is not the user's to know.
    expect(mine.map(({ ip }) => ip)).toEqual([null, null, null]);
    const all = await walked('/v1/admin/audit-log', 'adminAuditLog', 'admin');
    expect(all).toHaveLength(9);
    // Where an administrator sat is the account's no more than the user's.
    const told = await walked('/v1/admin/audit-log', 'adminAuditLog', 'admin', { account_id });
    expect(told.map(({ ip }) => ip)).toEqual(Array(4).fill('203.0.113.7'));
    expect(own).toEqual(told.map((one) => (one['action'] === 'account:guest_seated' ? { ...one, ip: null } : one)));
  });

  test('is filtered by action, actor, target and time', async () => {
    const [newest, , , oldest] = await account('owner');
    const only = async (filter: Record<string, string>) => actions(await account('owner', filter));
    expect(await only({ action: 'guest:renamed', actor_id, target_id: guest_id })).toEqual(['guest:renamed']);
    expect(await only({ actor_id: user_id })).toEqual([]);
    expect(await only({ target_id: guest_id, from: newest!['created_at'] as string })).toEqual(['guest:removed']);
    expect(await only({ from: oldest!['created_at'] as string, to: newest!['created_at'] as string })).toHaveLength(3);
    const at = await walked('/v1/admin/audit-log', 'adminAuditLog', 'admin', { actor_id: 'ops' });
    expect(at.map(({ after }) => after)).toEqual([{ on: false }, { on: true }]);
    for (const bad of [
      'from=x',
      'to=2026-02-30',
      'from=2026-01-02&to=2026-01-01',
      'limit=0',
      'cursor=x',
      `cursor=${Buffer.from('["x",1,"y"]').toString('base64url')}`,
    ]) {
      const { status, json } = await api.rest('GET', `/v1/account/audit-log?${bad}`);
      expect([bad, status, json.error]).toEqual([bad, 400, 'VALIDATION_ERROR']);
    }
  });

  test('is for who holds audit-log:read in that scope', async () => {
    const status = async (path: string, as: string) => (await api.rest('GET', path, { as })).status;
    const paths = ['/v1/account/audit-log', '/v1/account/audit-log/head', '/v1/account/audit-log/stream'];
    for (const path of paths) {
      expect([path, await status(path, 'powerless'), await status(path, 'key'), await status(path, '')]).toEqual([
        path,
        403,
        200,
        401,
      ]);
    }
    expect(await status('/v1/admin/audit-log', 'owner')).toBe(403);
    expect(await status('/v1/me/audit-log', 'key')).toBe(403);
  });

  test('an account without entries has an empty log', async () => {
    expect((await api.rest('GET', '/v1/account/audit-log/head', { as: 'stranger' })).json.data).toEqual({
      hash: '0'.repeat(64),
      id: null,
      count: 0,
      position: null,
    });
    expect((await api.rest('GET', '/v1/account/audit-log/stream', { as: 'stranger' })).text).toBe('');
  });

  describe('a row that was changed, removed or added by hand', () => {
    const chain = `account:${account_id}`;
    const forged = (number: number) => `
      insert into audit_log select chain, ${number}, hash, gen_random_uuid(), account_id, action, actor_kind, actor_id,
        target_kind, target_id, type, position, created_at, before, after, personal
      from audit_log where chain = '${chain}' and number = 4`;
    const at = (number: number) => `where chain = '${chain}' and number = ${number}`;
    test.each<[string, string, number, string]>([
      ['an action', `update audit_log set action = 'x' ${at(2)}`, 2, 'changed'],
      ['an actor', `update audit_log set actor_id = null ${at(3)}`, 3, 'changed'],
      ['what was the case', `update audit_log set before = '{"seat":7}' ${at(2)}`, 2, 'changed'],
      ['a time', `update audit_log set created_at = created_at - interval '1 microsecond' ${at(1)}`, 1, 'changed'],
      ['a sealed value', `update audit_log set personal = '{}' ${at(1)}`, 1, 'changed'],
      ['a personal value that is no object', `update audit_log set personal = 'null' ${at(1)}`, 1, 'changed'],
      ['a hash', `update audit_log set hash = repeat('0', 64) ${at(4)}`, 4, 'changed'],
      ['the first entry gone', `delete from audit_log ${at(1)}`, 1, 'missing'],
      ['an entry gone', `delete from audit_log ${at(3)}`, 3, 'missing'],
      ['the last entry gone', `delete from audit_log ${at(4)}`, 4, 'missing'],
      ['a whole chain gone', `delete from audit_log where chain = '${chain}'`, 1, 'missing'],
      ['one more at the end', forged(5), 5, 'added'],
      [
        'one more, and the end with it',
        `${forged(5)}; update audit_log_heads set number = 5 where chain = '${chain}'`,
        5,
        'changed',
      ],
      ['its end gone', `delete from audit_log_heads where chain = '${chain}'`, 1, 'added'],
    ])('%s', async (_what, sql, number, why) => {
      const undone = new Error('undone');
      const seen: unknown[] = [];
      const planted = t.db.transaction(async (tx) => {
        await tx.query(sql);
        const looks = [{ page: 1 }, {}, { chain }, { chain: 'installation' }];
        for (const look of looks) {
          const { broken } = await verifyAuditLog(tx, look);
          seen.push(broken.map(({ id, ...one }) => ({ ...one, named: id !== null })));
        }
        throw undone;
      });
      await expect(planted).rejects.toBe(undone);
      const broken = [{ chain, number, why, named: why !== 'missing' }];
      expect(seen).toEqual([broken, broken, broken, []]);
    });
  });

  test('its stream is verified outside, resumed, and holds after an erasure that takes personal values', async () => {
    const stream = async (after = '', as = 'owner') => {
      const { status, text } = await api.rest('GET', `/v1/account/audit-log/stream${after && `?after=${after}`}`, {
        as,
      });
      return status === 200
        ? text
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line))
        : status;
    };
    const head = async () => (await api.rest('GET', '/v1/account/audit-log/head')).json.data;
    const lines = (await stream()) as Line[];
    expect(lines.map(({ after }) => after)).toEqual([
      { user_id, email: 'ada@example.org', seat: 1 },
      { seat: 2 },
      { user_id, email: 'countess@example.org' },
      { why: 'late' },
    ]);
    const last = lines[3]!;
    expect(verifiedOutside(lines)).toBe(last.hash);
    expect(await head()).toEqual({ hash: last.hash, id: last.id, count: 4, position: last.position });
    expect((await api.gql('{ accountAuditLogHead { hash id count position } }')).json.data.accountAuditLogHead).toEqual(
      await head(),
    );
    expect(await stream(lines[1]!.id)).toEqual(lines.slice(2));
    expect(verifiedOutside(lines.slice(2), lines[1])).toBe(last.hash);
    expect(await stream(last.id)).toEqual([]);
    expect(await stream(uuid())).toBe(404);
    expect(await stream(last.id, 'stranger')).toBe(404);
    for (const changed of [
      { action: 'x' },
      { after: { seat: 3 } },
      { target: { kind: 'guest', id: user_id } },
      { position: '99' },
    ] as JsonObject[]) {
      expect(verifiedOutside([lines[0]!, { ...lines[1]!, ...changed } as Line])).toBeNull();
    }

    await on.subject_keys.erase(`user:${user_id}`);
    await on.subject_keys.erase(`user:${actor_id}`);
    await t.db.query('delete from profiles');
    const erased = (await stream()) as Line[];
    expect(
      erased.map(({ before, after, ip, actor }) => [before?.['email'], after?.['email'], ip, actor.label]),
    ).toEqual([
      [undefined, null, null, null],
      [undefined, undefined, null, null],
      [null, null, null, null],
      [null, undefined, null, null],
    ]);
    expect(verifiedOutside(erased)).toBe(last.hash);
    expect((await head()).hash).toBe(last.hash);
    expect(await verifyAuditLog(t.db)).toEqual({ chains: 3, entries: 9, broken: [] });
  });

  test('events one by one, and a rebuild after the erasure, give the same rows and hashes', async () => {
    expect(await kept()).toEqual(live);
    await rebuild({ db: t.db, ...on, projections: [projection], name: projection.name });
    expect(await kept()).toEqual(live);
    await t.db.query('truncate audit_log, audit_log_heads, audit_log_targets; truncate checkpoints');
    await projected(1);
    expect(await kept()).toEqual(live);
  });
});

test('a later version of a type leaves a chain as it is; what is built anew says older entries in its words, and holds', async () => {
  const t = await testDatabase(10);
  const on = await engines(t.db);
  const chair_id = uuid();
  const build = (declared: ReturnType<typeof chairs>) => {
    const known = catalogue([declared]);
    const events = attributedEventStore(versionedEventStore(on.events, createUpcasters(upcastersOf(known))));
    return { events, projection: auditLog(known) };
  };
  const chairs = (taken: EventDeclaration) => events({ 'chair:taken': taken });
  const before = build(chairs(event({ chair_id: id, place: z.string() })));
  const renamed = ({ place, ...one }: JsonObject): JsonObject => ({ ...one, row: place! });
  const after = build(chairs(event({ chair_id: id, row: z.string() }, { version: 2, upcast: [renamed] })));
  const take = async ({ events: store, projection }: typeof before, data: JsonObject, entries: number) => {
    const one = { id: uuid(), type: 'chair:taken', data: { chair_id, ...data } };
    await store.append([{ stream: `chair-${chair_id}`, expected: 'any', events: [one] }], {});
    const runtime = runtimeOf(t.db, { ...on, events: store }, [projection]);
    await runtime.start();
    await until(async () => (await logged()).length === entries);
    await runtime.stop();
  };
  const logged = () => t.db.query<{ hash: string; after: string }>('select hash, after from audit_log order by number');
  const said = async () => (await logged()).map((row) => JSON.parse(row.after) as JsonObject);
  const whole = { chains: 1, broken: [] };
  await take(before, { place: 'A' }, 1);
  const [first] = await logged();
  await take(after, { row: 'B' }, 2);
  expect(await said()).toEqual([{ place: 'A' }, { row: 'B' }]);
  expect((await logged())[0]).toEqual(first);
  expect(await verifyAuditLog(t.db)).toEqual({ ...whole, entries: 2 });

  const { events: store, projection } = after;
  await rebuild({ db: t.db, ...on, events: store, projections: [projection], name: projection.name });
  expect(await said()).toEqual([{ row: 'A' }, { row: 'B' }]);
  expect((await logged())[0]!.hash).not.toBe(first!.hash);
  expect(await verifyAuditLog(t.db)).toEqual({ ...whole, entries: 2 });
  await on.close();
  await t.drop();
});

describe('on the server', () => {
  test('what a member does is read in the log, and lumio audit verify names what was changed by hand', async () => {
    const server = await sharedServer();
    const { door, account_id, user_id, display_name } = await server.account();
    const made = await door.rest('POST', '/v1/api-keys', { body: { label: 'Bot', permissions: ['events:read'] } });
    const { id, key_prefix } = made.json.data;
    const [entry] = await until(async () => {
      const { data } = (await door.rest('GET', '/v1/account/audit-log?action=api_key:created')).json;
      return data.length > 0 && (data as AuditLogEntry[]);
    });
    expect(entry).toMatchObject({
      account_id,
      actor: { kind: 'jwt', id: user_id, label: display_name },
      target: { kind: 'api_key', id },
      before: null,
      after: { user_id, key_prefix, label: 'Bot', permissions: ['events:read'], expires_at: null },
      ip: expect.any(String),
    });

    const verify = () => runLumio(['audit', 'verify', '--account', account_id], server.env);
    expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringContaining('1 of 1 chains hold') });
    const database = new PostgresDatabase({ url: server.database_url, name: 'hand', size: 1 });
    await database.query(`update audit_log set actor_id = 'somebody' where id = $1`, [entry!.id]);
    const { code, stdout, stderr } = await verify();
    await database.query('update audit_log set actor_id = $2 where id = $1', [entry!.id, user_id]);
    await database.close();
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('0 of 1 chains hold') });
    expect(stderr).toContain(`account:${account_id}: entry`);
    expect(stderr).toContain(`(${entry!.id}) is not as it was made`);
  });
});

const camel = (name: string) => name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());

interface Line extends JsonObject {
  id: string;
  hash: string;
  position: string;
  actor: { kind: string | null; id: string | null; label: string | null };
  before: JsonObject | null;
  after: JsonObject | null;
  ip: string | null;
}

/** What the program in docs/audit.md prints for these lines; null when it says that they do not hold. */
function verifiedOutside(lines: readonly Line[], after?: Line): string | null {
  const program = /```js\n(.*?)```/s.exec(readFileSync(join(__dirname, '../../docs/audit.md'), 'utf8'))![1]!;
  const folder = mkdtempSync(join(tmpdir(), 'lumio-audit-'));
  writeFileSync(join(folder, 'verify.mjs'), program);
  const { status, stdout } = spawnSync(process.execPath, ['verify.mjs', ...(after ? [after.hash] : [])], {
    cwd: folder,
    input: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    encoding: 'utf8',
  });
  rmSync(folder, { recursive: true });
  return status === 0 ? stdout.trim() : null;
}
