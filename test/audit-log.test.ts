import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import { EVENTS } from '../bin/areas';
import { auditFault } from '../domain/audit-entries';
import { attributedEventStore } from '../engines/event-store/attributed';
import type { EventStore, Metadata } from '../engines/event-store/port';
import { createSealing, sealedEventStore } from '../engines/event-store/sealing';
import { catalogue, event, events, subject } from '../kernel/event';
import type { JsonObject } from '../kernel/json';
import { auditLog } from '../projections/audit-log';
import { rebuild } from '../projections/runtime/rebuild';
import { type TestDatabase, testDatabase } from './support/database';
import { engines, type Engines, runtimeOf, until } from './support/projections';

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
      const fault = auditFault(type, declaration);
      return fault === null ? [] : [`${type}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });

  test('what an entry would not say well is seen', () => {
    const personal = { name: subject('user', 'user_id') };
    const faulty = {
      'a thing without its id': event({ user_id: id }),
      'a personal target': event({ name: z.string().nullable() }, { personal, audit: { target: ['name', 'name'] } }),
      'a member that is not there': event({ thing_id: id }, { audit: { omit: ['other'] } }),
    };
    for (const declaration of Object.values(faulty)) expect(auditFault('thing:made', declaration)).not.toBeNull();
    expect(auditFault('thing:part_added', event({ thing_id: id, part: z.string() }))).toContain('what is added?');
    for (const [type, declaration] of DECLARED) expect([type, auditFault(type, declaration)]).toEqual([type, null]);
  });
});

describe('the read model', () => {
  let t: TestDatabase;
  let on: Engines;
  let store: EventStore;
  const projection = auditLog(DECLARED);
  beforeEach(async () => {
    t = await testDatabase(10);
    on = await engines(t.db);
    store = attributedEventStore(sealedEventStore(on.events, createSealing(DECLARED, on.subject_keys)));
    on = { ...on, events: store };
  });
  afterEach(async () => {
    await on.close();
    await t.drop();
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
    await append('guest:seated', { ...guest, seat: 2 });
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
  const rest = async () => [
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
    await story();
    await projected();
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

  test('events one by one, in batches, and a rebuild after an erasure give the same rows and hashes', async () => {
    await story();
    await projected();
    const live = [await rows(), ...(await rest())];
    await on.subject_keys.erase(`user:${user_id}`);
    await rebuild({ db: t.db, ...on, projections: [projection], name: projection.name });
    expect([await rows(), ...(await rest())]).toEqual(live);

    await t.db.query('truncate audit_log, audit_log_heads, audit_log_targets; truncate checkpoints');
    await projected(1);
    expect([await rows(), ...(await rest())]).toEqual(live);
  });
});
