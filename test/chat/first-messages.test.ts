import { v7 as uuid } from 'uuid';
import { createFirstMessages } from '../../ingest/runtime/parse/first-messages';
import { createIntake } from '../../ingest/runtime/webhook/intake';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { chatters as chattersModel } from '../../projections/chat/chatters';
import { eventLog } from '../../projections/events/events';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { testDatabase, type TestDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { type Engines, engines, opened, runtimeOf, until } from '../support/projections';
import { channelOf, twitchFrame } from '../support/twitch-frames';
import { connectionsOf } from '../support/webhooks';

let t: TestDatabase;
let on: Engines;
let runtime: ReturnType<typeof runtimeOf>;
const READ_MODELS = [chattersModel, eventLog];

beforeEach(async () => {
  t = await testDatabase();
  on = await engines(t.db);
});
afterEach(async () => {
  await runtime?.stop();
  await on?.close();
  await t?.drop();
});

async function project() {
  runtime = runtimeOf(t.db, on, READ_MODELS);
  await runtime.start();
}

/** Processes that take messages in; each remembers authors of its own. */
const intake = () =>
  createIntake({
    connections: connectionsOf({}, null),
    records: on.records,
    first_messages: createFirstMessages({ db: t.db, records: on.records, subject_keys: on.subject_keys }),
    log: silentLog,
  });

const OWN_ROOM = 'channel.chat.message.v1.body.json';
const OTHER_ROOM = 'channel.chat.message.v1.shared_chat.body.json';
let messages = 0;

/** A message of the fixture, by somebody else and with an id of its own. */
function draftsOf(account_id: string, chatter: string, file = OWN_ROOM, more: object = {}) {
  const frame = JSON.parse(twitchFrame(file)) as { metadata: object; payload: { event: Record<string, unknown> } };
  Object.assign(frame.payload.event, { chatter_user_id: chatter, message_id: `m-${(messages += 1)}`, ...more });
  const text = JSON.stringify(frame);
  const connection = { connection_id: 'c', account_id, channel_id: channelOf(text) };
  const outcome = normaliseTwitch({ text, received_at: Date.now(), age_ms: 0 }, connection);
  return outcome.kind === 'ok' ? outcome.records : [];
}

const write = (via: ReturnType<typeof intake>, ...message: Parameters<typeof draftsOf>) =>
  via.store(draftsOf(...message), Date.now(), null);

const settled = async () => {
  for (const p of READ_MODELS) {
    for (const [partition, { next }] of await on.broker.bounds(p.from.topic)) {
      await until(async () => {
        const [row] = await t.db.query<{ position: string }>(
          'select position from checkpoints where projection = $1 and partition = $2',
          [p.name, partition],
        );
        return Number(row?.position ?? 0) >= next;
      });
    }
  }
};

const firsts = async () => {
  await settled();
  return t.db.query<{ account_id: string; user_id: string | null }>(
    `select account_id, user_id from platform_event_logs where type = 'twitch:first_message' order by created_at, id`,
  );
};
const chatters = () => t.db.query('select * from chatters order by account_id, person_key');

test('one event for each account and person, whichever processes take the messages in', async () => {
  await opened(t.db, on, READ_MODELS);
  const [one, other] = [uuid(), uuid()];
  const [first, second] = [intake(), intake()];
  // No read model runs yet, so that neither process sees what the other stored.
  for (const via of [first, second, first, second]) {
    await Promise.all([write(via, one, '7'), write(via, one, '7'), write(via, one, '8'), write(via, other, '7')]);
  }
  await project();
  const expected = [
    { account_id: one, user_id: '7' },
    { account_id: one, user_id: '8' },
    { account_id: other, user_id: '7' },
  ];
  expect(await firsts()).toHaveLength(3);
  expect(await firsts()).toEqual(expect.arrayContaining(expected));
  expect(await chatters()).toHaveLength(3);

  // A process that remembers nobody finds them in the read model, and appends nothing.
  const before = await on.broker.bounds('platform-events');
  await write(intake(), one, '7');
  expect(await on.broker.bounds('platform-events')).toEqual(before);
});

test('a message from another room of a shared chat is no first one, and takes none away', async () => {
  await opened(t.db, on, READ_MODELS);
  await project();
  const account_id = uuid();
  await write(intake(), account_id, '7', OTHER_ROOM);
  // The vendor's payload inside the record may have a member of the same name.
  await write(intake(), account_id, '7', OTHER_ROOM, { shared_chat: null });
  expect(await firsts()).toEqual([]);
  expect(await chatters()).toEqual([]);
  await write(intake(), account_id, '7');
  expect(await firsts()).toEqual([{ account_id, user_id: '7' }]);
});

test('a rebuild makes the same rows and no event, before and after an erasure; then the person is new', async () => {
  await opened(t.db, on, READ_MODELS);
  await project();
  const account_id = uuid();
  for (const chatter of ['7', '8']) await write(intake(), account_id, chatter);
  expect(await firsts()).toHaveLength(2);
  const rows = await chatters();
  const build = () => rebuild({ db: t.db, ...on, projections: READ_MODELS, name: chattersModel.name });
  await build();
  expect(await chatters()).toEqual(rows);
  await write(intake(), account_id, '7');
  expect(await firsts()).toHaveLength(2);

  await on.subject_keys.erase('twitch:7');
  await build();
  expect(await chatters()).toEqual(rows);
  for (const chatter of ['7', '8', '7']) await write(intake(), account_id, chatter);
  expect(await firsts()).toHaveLength(3);
});

test('nobody is new while the read model lacks the messages of before', async () => {
  await opened(t.db, on, READ_MODELS);
  const account_id = uuid();
  const via = intake();
  await t.db.query(`update checkpoints set built = false where projection = 'chatters' and partition = 0`);
  await write(via, account_id, '7');
  await t.db.query(`update checkpoints set built = true where projection = 'chatters'`);
  await project();
  expect(await firsts()).toEqual([]);
  await write(via, account_id, '8');
  expect(await firsts()).toEqual([{ account_id, user_id: '8' }]);
});

test('an append that fails is repeated with its event, a killed one leaves the event alone', async () => {
  await opened(t.db, on, READ_MODELS);
  await project();
  const account_id = uuid();
  const { append } = on.records;
  let away = true;
  on.records.append = (topic, records) =>
    away && topic === 'chat-events' ? Promise.reject(new Error('away')) : append(topic, records);
  const via = intake();
  const drafts = draftsOf(account_id, '7');
  await expect(via.store(drafts, Date.now(), null)).rejects.toThrow('away');
  expect(await firsts()).toHaveLength(1);
  away = false;
  await via.store(drafts, Date.now(), null);
  expect(await firsts()).toHaveLength(1);
  expect(await chatters()).toHaveLength(1);
});
