import { v7 as uuid } from 'uuid';
import { type Channel, readChannelName, writeChannelName } from '../../services/connections/channel-names';
import { UPCASTERS } from '../../bin/areas';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { adoptChannelNames } from '../../maintenance/upgrade/channel-name-adoption';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import type { Engines } from '../support/projections';

let t: TestDatabase;
let on: Engines;
enginesOfEach((database, embedded) => ([t, on] = [database, embedded]));
const names = () => ({ db: t.db, texts: createPersonalTexts(on.subject_keys) });
const ada: Channel = { platform: 'kick', platform_channel_id: '42' };
const bob: Channel = { platform: 'trovo', platform_channel_id: '42' };

test('a channel is called what its platform said last, lies sealed, and is forgotten with its person', async () => {
  expect(await readChannelName(names(), ada)).toBeNull();
  for (const name of ['ada', 'Ada live']) await writeChannelName(names(), ada, name);
  await writeChannelName(names(), bob, 'Bob');
  expect(await readChannelName(names(), ada)).toBe('Ada live');
  expect(JSON.stringify(await t.db.query('select * from channel_names'))).not.toMatch(/Ada|Bob/);

  await on.subject_keys.erase('kick:42');
  expect(await readChannelName(names(), ada)).toBeNull();
  expect(await readChannelName(names(), bob)).toBe('Bob');
  // In another row the text does not open.
  await t.db.query(`update channel_names set platform_channel_id = '43' where platform = 'trovo'`);
  await expect(readChannelName(names(), { ...bob, platform_channel_id: '43' })).rejects.toThrow();
});

test('names that the build before keeps in clear are taken over, and its events give none', async () => {
  const connected = (platform: string, account_id: string, name: string | null) =>
    t.db.query(
      `insert into channel_connections (id, account_id, platform, platform_channel_id, channel_name, connected_at)
       values ($1, $2, $3, '42', $4, now())`,
      [uuid(), account_id, platform, name],
    );
  const [one, other] = [uuid(), uuid()];
  for (const account of [one, other]) await connected('kick', account, 'Ada');
  await connected('trovo', one, null);
  const both = await Promise.all([adoptChannelNames(names()), adoptChannelNames(names())]);
  expect(both.sort()).toEqual([0, 1]);
  expect(await adoptChannelNames(names())).toBe(0);
  expect(await readChannelName(names(), ada)).toBe('Ada');
  expect(await readChannelName(names(), bob)).toBeNull();
  expect(await t.db.query('select 1 as one from channel_connections where channel_name is not null')).toEqual([]);

  const data = { account_id: one, platform: 'kick', platform_channel_id: '42', channel_name: 'Ada' };
  expect(UPCASTERS.read({ type: 'connection:channel_connected', data }).data).not.toHaveProperty('channel_name');
});
