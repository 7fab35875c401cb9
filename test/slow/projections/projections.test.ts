import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { allMessages } from '../../support/outbox';
import type { TestDatabase } from '../../support/database';
import {
  type Engines,
  eventTally,
  fold,
  opened,
  rowsOf,
  runtimeOf,
  seeded,
  tally,
  until,
} from '../../support/projections';
import { talliedDatabase } from '../../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

async function happen(streams: number, each: number, type = 'thing:happened'): Promise<[string, string][]> {
  const happened: [string, string][] = [];
  for (let n = 0; n < each; n += 1) {
    await Promise.all(
      Array.from({ length: streams }, async (_, s) => {
        const id = uuid();
        await on.events.append([{ stream: `thing-${s}`, expected: 'any', events: [{ id, type, data: { n } }] }], {});
        happened.push([`thing-${s}`, id]);
      }),
    );
  }
  return happened;
}

/** Every channel's messages are numbered 1, 2, 3 … in the order of ids, one for each applied record. */
async function expectOutbox(entries: readonly (readonly [string, string])[]): Promise<void> {
  const seen = new Map<string, string[]>();
  for (const row of await allMessages(t.db)) {
    const list = seen.get(row.channel) ?? [];
    seen.set(row.channel, list);
    expect(row.seq).toBe(list.length + 1);
    list.push(JSON.parse(row.data).id as string);
  }
  const expected = new Map<string, string[]>();
  for (const [owner, id] of entries) expected.set(`events:${owner}`, [...(expected.get(`events:${owner}`) ?? []), id]);
  expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(expected));
}

test('kill -9 at random points, again and again: the rows are the fold', async () => {
  const random = seeded(26);
  const published: [string, string][] = [];
  const happened: [string, string][] = [];
  await opened(t.db, on, [tally(), eventTally()]);
  for (let kill = 0; kill < 6; kill += 1) {
    published.push(...(await publish(400)));
    happened.push(...(await happen(4, 10)));
    const child = spawn(
      process.execPath,
      [join(__dirname, '../../../dist/test/support/projector-child.js'), 'run', t.url],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const dead = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await new Promise((resolve) => setTimeout(resolve, random() * 120));
    child.kill('SIGKILL');
    await dead;
  }
  const runtime = runtimeOf(t.db, on, [tally(), eventTally()]);
  await runtime.start();
  await until(async () => (await total()) >= published.length && (await total('event_tally')) >= happened.length);
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold(published));
  expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
  await expectOutbox([...published, ...happened]);
});
