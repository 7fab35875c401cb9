import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import { declaredEventStore } from '../../engines/event-store/decorators/declared';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import { createSealing, sealedEventStore } from '../../engines/event-store/decorators/sealing';
import { catalogue, event, events, EventSchemaError, subject } from '../../kernel/event';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import type { Engines } from '../support/projections';

const DECLARED = catalogue([
  events({
    'guest:invited': event(
      { guest_id: z.uuid(), email: z.string().nullable(), address: z.object({ city: z.string() }).nullable() },
      { personal: { email: subject('user', 'guest_id'), address: subject('user', 'guest_id') } },
    ),
    'guest:came': event({ guest_id: z.uuid() }),
  }),
]);

let t: TestDatabase;
let on: Engines;
let store: EventStore;

enginesOfEach((database, embedded) => {
  [t, on] = [database, embedded];
  store = declaredEventStore(sealedEventStore(on.events, createSealing(DECLARED, on.subject_keys)), DECLARED);
});

const guest = (guest_id: string) => ({ guest_id, email: 'ada@example.org', address: { city: 'Köln' } });
const invite = (guest_id: string, id = uuid()) =>
  store.append(
    [{ stream: `guest-${guest_id}`, expected: 'none', events: [{ id, type: 'guest:invited', data: guest(guest_id) }] }],
    { actor_kind: 'test' },
  );
const clear = (read: readonly StoredEvent[]) => read.map(({ data }) => data);
const everything = async () => JSON.stringify(await t.db.query('select * from domain_events'));

test('personal members lie encrypted and are read in clear, on every way of reading', async () => {
  const ada = uuid();
  await invite(ada);
  expect(await everything()).not.toMatch(/ada@example|Köln|\\u00f6ln/);

  expect(clear(await store.read(`guest-${ada}`))).toEqual([guest(ada)]);
  for await (const { events: some } of store.readAll(null)) expect(clear(some)).toEqual([guest(ada)]);
  const seen = await new Promise<StoredEvent[]>((resolve) => {
    const subscription = store.subscribe({ after: null }, async ({ events: some }) => {
      if (some.length > 0) resolve(some);
    });
    subscription.done.catch(() => undefined);
  });
  expect(clear(seen)).toEqual([guest(ada)]);
});

test('what is passed on carries the cipher text that is stored', async () => {
  const ada = uuid();
  await invite(ada);
  const [stored] = await on.events.read(`guest-${ada}`);
  const [opened] = await store.read(`guest-${ada}`);
  expect(opened!.stored).toEqual(stored!.data);
  expect(JSON.stringify(stored)).not.toContain('ada@example');
});

test('an erased person reads as null, everybody else as before', async () => {
  const [ada, bob] = [uuid(), uuid()];
  await invite(ada);
  await invite(bob);
  await on.subject_keys.erase(`user:${ada}`);
  expect(clear(await store.read(`guest-${ada}`))).toEqual([{ guest_id: ada, email: null, address: null }]);
  expect(clear(await store.read(`guest-${bob}`))).toEqual([guest(bob)]);
});

test('a key store that does not answer is an error, never an erasure', async () => {
  const ada = uuid();
  await invite(ada);
  const away = {
    ...on.subject_keys,
    forReading: () => Promise.reject(new Error('the key store is away')),
    forWriting: () => Promise.reject(new Error('the key store is away')),
  };
  store = sealedEventStore(on.events, createSealing(DECLARED, away));
  await expect(store.read(`guest-${ada}`)).rejects.toThrow('the key store is away');
  await expect(invite(uuid())).rejects.toThrow('the key store is away');
  const batch = store.subscribe({ after: null }, async () => undefined);
  await expect(batch.done).rejects.toThrow('the key store is away');
});

test('a retried append is the same append although its cipher text is another', async () => {
  const [ada, id] = [uuid(), uuid()];
  const first = await invite(ada, id);
  await expect(invite(ada, id)).resolves.toEqual(first);
  expect(await store.read(`guest-${ada}`)).toHaveLength(1);
});

test('a sealed member opens only where it belongs', async () => {
  const [ada, bob] = [uuid(), uuid()];
  await invite(ada);
  const [{ data } = { data: {} }] = await on.events.read(`guest-${ada}`);
  const moved = { id: uuid(), type: 'guest:invited', data: { ...data, guest_id: bob } };
  await on.events.append([{ stream: `guest-${bob}`, expected: 'none', events: [moved as never] }], {});
  await expect(store.read(`guest-${bob}`)).rejects.toThrow();
});

test('what does not fit its declaration is refused, and nothing of its append is stored', async () => {
  const ada = uuid();
  const came = { id: uuid(), type: 'guest:came', data: { guest_id: ada } };
  const wrong = { id: uuid(), type: 'guest:came', data: { guest_id: 'nobody' } };
  const writes = [
    { stream: `guest-${ada}`, expected: 'none' as const, events: [came] },
    { stream: 'guest-other', expected: 'none' as const, events: [wrong] },
  ];
  await expect(store.append(writes, {})).rejects.toThrow(EventSchemaError);
  expect(await store.read(`guest-${ada}`)).toEqual([]);
});
