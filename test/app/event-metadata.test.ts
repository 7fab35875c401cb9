import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { metadata } from '../../app/write-path/metadata';
import { attributedEventStore } from '../../engines/event-store/decorators/attributed';
import type { EventStore, Metadata, StoredEvent } from '../../engines/event-store/port';
import { createSealing, sealedEventStore } from '../../engines/event-store/decorators/sealing';
import type { JsonObject } from '../../lib/json/json';
import { catalogue, event, events, subject } from '../../kernel/event';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import type { Engines } from '../support/projections';

const DECLARED = catalogue([
  events({
    'guest:invited': event(
      { guest_id: z.uuid(), email: z.string().nullable() },
      { personal: { email: subject('user', 'guest_id') } },
    ),
  }),
]);
const IP = '203.0.113.77';

let t: TestDatabase;
let on: Engines;
let store: EventStore;
enginesOfEach((database, embedded) => {
  [t, on] = [database, embedded];
  store = attributedEventStore(sealedEventStore(on.events, createSealing(DECLARED, on.subject_keys)));
});

const append = async (data: JsonObject, given: Metadata, type = 'x:happened'): Promise<StoredEvent> => {
  const [stream, id] = [`s-${uuid()}`, uuid()];
  await store.append([{ stream, expected: 'none', events: [{ id, type, data }] }], given);
  return (await on.events.read(stream))[0]!;
};
const opened = async ({ stream }: StoredEvent) => (await store.read(stream, 0, { ips: true }))[0]!.metadata;

test('an event names its account and its cause, whoever appends', async () => {
  const own = await append({ account_id: 'a-1' }, { account_id: 'another', correlation_id: 'c-1' });
  expect(own.metadata).toMatchObject({ account_id: 'a-1', causation_id: 'c-1' });
  const bare = await append({}, {});
  expect(bare.metadata).toEqual({ account_id: 'global', causation_id: bare.id });
  expect((await append({}, { causation_id: 'e-1', correlation_id: 'c-1' })).metadata['causation_id']).toBe('e-1');
});

test('a request is the cause of its events, and brings its address', () => {
  const caller = { kind: 'jwt', user_id: 'u', account_id: null, credential_id: 's' } as Caller;
  const context: RequestContext = { correlation_id: 'c', trace: null, ip: IP, now: 0, idempotency_seed: null };
  expect(metadata(caller, context)).toMatchObject({ causation_id: 'c', correlation_id: 'c', ip: IP });
  expect(metadata(caller, { ...context, causation_id: 'e' })).toMatchObject({ causation_id: 'e' });
});

test('the maker of a popout token is the actor, beside the member that it acts for', () => {
  const context: RequestContext = { correlation_id: 'c', trace: null, ip: IP, now: 0, idempotency_seed: null };
  const popout = { kind: 'popout', user_id: 'owner', account_id: 'a', credential_id: 't' } as Caller;
  const of = (made_by: string) => metadata({ ...popout, made_by }, context);
  expect(of('maker')).toMatchObject({ actor_kind: 'popout', actor_id: 'maker', acts_for: 'owner', credential_id: 't' });
  expect(of('owner')).toMatchObject({ actor_id: 'owner' });
  expect(of('owner')).not.toHaveProperty('acts_for');
});

test('the address of a person lies sealed, opens on demand, and goes with the person', async () => {
  const actor_id = uuid();
  const stored = await append({}, { actor_id, correlation_id: 'c', ip: IP });
  expect(JSON.stringify(stored)).not.toContain(IP);
  expect((await store.read(stored.stream))[0]!.metadata).not.toHaveProperty('ip');
  expect(await opened(stored)).toMatchObject({ actor_id, ip: IP });
  for await (const batch of store.readAll(null, { ips: true })) expect(batch.events[0]!.metadata['ip']).toBe(IP);

  await on.subject_keys.erase(`user:${actor_id}`);
  const after = await opened(stored);
  expect(after).toMatchObject({ actor_id });
  expect(after).not.toHaveProperty('ip');
});

test('without a person the address is under a key of the account, which expires', async () => {
  const stored = await append({ account_id: 'a-1' }, { correlation_id: 'c', ip: IP });
  const other = await append({ account_id: 'a-2' }, { correlation_id: 'c', ip: IP });
  expect(await opened(stored)).toMatchObject({ ip: IP });
  expect(other.metadata['ip_key']).not.toBe(stored.metadata['ip_key']);
  expect(stored.metadata).not.toHaveProperty('subjects');

  expect(await on.subject_keys.expire()).toBe(0);
  const ends = await t.db.query(`select expires_at > now() + interval '89 days' as later from subject_keys`);
  expect(ends).toEqual([{ later: true }, { later: true }]);
  await t.db.query(`update subject_keys set expires_at = now() where key_id = $1`, [stored.metadata['ip_key']]);
  expect(await on.subject_keys.expire()).toBe(1);
  expect(await opened(stored)).not.toHaveProperty('ip');
  expect(await opened(other)).toMatchObject({ ip: IP });
});

test('subjects are the hashes of all whose personal parts an append holds, and none in clear', async () => {
  const [guest_id, actor_id] = [uuid(), uuid()];
  const invited = { guest_id, email: 'ada@example.org' };
  const stored = await append(invited, { actor_id, correlation_id: 'c', ip: IP }, 'guest:invited');
  const hashes = await on.subject_keys.hashesOf([`user:${guest_id}`, `user:${actor_id}`]);
  expect(stored.metadata['subjects']!.split(',').sort()).toEqual([...hashes.values()].sort());
  expect(stored.metadata['subjects']).toMatch(/^[\w-]{22},[\w-]{22}$/);
  expect((await append({ ...invited, email: null }, {}, 'guest:invited')).metadata).not.toHaveProperty('subjects');
});
