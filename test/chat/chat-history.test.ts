import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { type ChatDraft, chatPerson } from '../../domain/chat/chat-messages';
import { PLATFORMS } from '../../domain/common/vendors';
import type { LoggedRecord } from '../../engines/records/port';
import { ERASED_RAW } from '../../domain/common/records';
import { sweepChat } from '../../maintenance/retention/chat';
import { chatLiveEraser } from '../../privacy/erasure/chat';
import { chatLive } from '../../projections/chat/chat';
import { chatMessageCount, chatMessages } from '../../read-api/chat/chat-messages';
import { chatModerationLog } from '../../read-api/chat/moderation-log';
import { searchPlatformUsers } from '../../read-api/chat/platform-users';
import { inPieces, rowsOf, undone } from '../support/applied';
import { act, chatRecord, message } from '../support/chat-records';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
let account_id: string;
beforeAll(async () => {
  t = await testDatabase();
});
beforeEach(() => {
  account_id = randomUUID();
});
afterAll(() => t?.drop());

const T0 = Date.parse('2026-11-01T12:00:00Z');
const at = (second: number) => new Date(T0 + second * 1000).toISOString();
const said = (draft: ChatDraft, second: number, received = second) =>
  chatRecord(draft, { account_id, at: at(second), received_at: at(received) });
const apply = (records: readonly LoggedRecord[], size = 1_000) =>
  t.db.transaction(async (tx) => {
    const messages = [];
    for (const batch of inPieces(records, size))
      messages.push(...(await chatLive.apply(batch, tx, { rebuilding: false, again: false })));
    return messages;
  });

type Page = { items: Record<string, any>[]; older: number | null; newer: number | null };
const refuse = (name: string) => new Error(name);
/** The page that a caller asks for; `from` is a place of another page. */
function page(
  input: object = {},
  from: { way: 'older' | 'newer'; key: number } | null = null,
  limit = 25,
  operation: { run: unknown } = chatMessages,
): Promise<Page> {
  const request = { input, caller: { account_id }, context: {}, page: { limit, from, max_bytes: 1 << 22 }, refuse };
  return (operation.run as (...of: unknown[]) => Promise<Page>)(request, { db: t.db });
}
const texts = async (input: object, limit = 100) => (await page(input, null, limit)).items.map((item) => item.message);
const count = (input: object = {}) =>
  (chatMessageCount.run as unknown as (...of: unknown[]) => Promise<{ count: number }>)(
    { input, caller: { account_id }, context: {}, refuse },
    { db: t.db },
  );
const log = (input: object = {}) => page(input, null, 25, chatModerationLog);

/** All pages from the newest or the oldest row on. */
async function walk(input: object, way: 'older' | 'newer', limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let from: number | null = way === 'older' ? null : 0; ;) {
    const found: Page = await page(input, from === null ? null : { way, key: from }, limit);
    const shown = found.items.map((item) => item.message as string);
    seen.push(...(way === 'older' ? shown : shown.reverse()));
    if (way === 'older' && found.older === null) return seen;
    if (way === 'newer' && shown.length === 0) return seen;
    from = way === 'older' ? found.older : found.newer;
  }
}

describe('chat history', () => {
  test('pages both ways show each message once, at its own time, while further ones come', async () => {
    const range = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, n) => `m${from - n}`);
    await apply(Array.from({ length: 30 }, (_, n) => said(message('7', `m${n}`), n)));
    const newest = await page({}, null, 10);
    expect(newest.items.map((item) => item.message)).toEqual(Array.from({ length: 10 }, (_, n) => `m${29 - n}`));
    // One of them was sent long before the others, and arrives only now.
    await apply([said(message('7', 'new'), 40), said(message('7', 'late'), 3, 41)]);
    const older = await page({}, { way: 'older', key: newest.older! }, 10);
    expect(older.items[0]!.message).toBe('m19');
    const oldest = await page({}, { way: 'older', key: older.older! }, 10);
    expect(oldest.items.map((item) => item.message)).toEqual([...range(9, 4), 'late', ...range(3, 1)]);
    const newer = await page({}, { way: 'newer', key: newest.newer! }, 10);
    expect(newer.items.map((item) => item.message)).toEqual(['new']);
    expect((await page({}, { way: 'newer', key: newer.newer! }, 10)).items).toEqual([]);
    expect(await walk({}, 'older', 7)).toHaveLength(32);
    expect(await walk({}, 'newer', 7)).toEqual((await walk({}, 'older', 100)).reverse());
  });

  test('messages of one time stand in the order of receipt, whichever batch they come in', async () => {
    // Kick sends times in seconds. More messages of one second than one read of taken places returns.
    const kick = (n: number) => said(message('7', `k${n}`, { platform: n % 2 ? 'kick' : 'trovo' }), 5, 6 + n);
    const records = Array.from({ length: 1_100 }, (_, n) => kick(n));
    await apply(records.slice(0, 1_050));
    await apply([said(act('ban', '8'), 5, 2_000), ...records.slice(1_050)], 7);
    const seen = await walk({}, 'older', 400);
    expect(seen).toEqual(records.map((_, n) => `k${1_099 - n}`));
    // The clock of a platform is ahead.
    await apply([said(message('7', 'ahead'), 10_000, 3_000), said(message('7', 'next'), 3_001)]);
    expect(await texts({}, 2)).toEqual(['next', 'ahead']);
    expect(await texts({ from: at(9_000) })).toEqual(['ahead']);
  });

  test('around a message stands what was said before and after it, oldest first', async () => {
    const records = Array.from({ length: 11 }, (_, n) => said(message('7', `m${n}`), n));
    await apply(records);
    const around = async (n: number, limit: number) => {
      const found = await page({ around: records[n]!.id }, null, limit);
      return found.items.map((item) => item.message as string);
    };
    expect(await around(5, 4)).toEqual(['m4', 'm5', 'm6', 'm7']);
    expect(await around(0, 4)).toEqual(['m0', 'm1', 'm2']);
    expect(await around(10, 3)).toEqual(['m9', 'm10']);
    expect(await around(5, 1)).toEqual(['m5']);
    await expect(page({ around: randomUUID() })).rejects.toThrow('MESSAGE_NOT_FOUND');
    account_id = randomUUID();
    await expect(page({ around: records[0]!.id })).rejects.toThrow('MESSAGE_NOT_FOUND');
  });

  test('each filter, alone and with others, finds what a look at every message finds', async () => {
    const arbitrary = fc.record({
      platform: fc.constantFrom(...PLATFORMS),
      author: fc.constantFrom('1', '2', '3'),
      text: fc.constantFrom('Hällo WORLD', 'see https://example.com/x', '100%_\\', 'مرحبا', 'привет ВСЕМ', 'x'),
      second: fc.integer({ min: 0, max: 600 }),
      delay: fc.constantFrom(0, 0, 0, 30, 90, 500),
      paid: fc.boolean(),
      live: fc.constantFrom(null, 'live-1', 'live-2'),
    });
    const query = fc.record({
      platform: fc.constantFrom(null, 'twitch', 'kick,youtube'),
      user_id: fc.constantFrom(null, '2'),
      from: fc.constantFrom(null, at(100)),
      to: fc.constantFrom(null, at(300)),
      live_chat_id: fc.constantFrom(null, null, 'live-1'),
      paid: fc.constantFrom(null, null, true, false),
      deleted: fc.constantFrom(null, null, true, false),
      search: fc.constantFrom(null, 'world', '%_', 'ВСЕМ', 'حبا', 'has:link', 'from:login_3', 'from:Name x', 'nothing'),
    });
    const amount = { amount_minor: 100, currency: 'BITS', display: null, tier: null, sticker_id: null } as const;
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbitrary, { maxLength: 60 }),
        fc.array(query, { minLength: 5, maxLength: 5 }),
        fc.constantFrom(3, 1_000),
        async (list, queries, size) => {
          account_id = randomUUID();
          list.sort((a, b) => a.second + a.delay - (b.second + b.delay));
          const all = list.map(({ platform, author, text, second, delay, paid, live }) => {
            const draft = message(author, text, { platform, live_chat_id: live });
            if (paid) draft.paid = { kind: 'bits', ...amount };
            return { draft, second, record: said(draft, second, second + delay) };
          });
          // Every fifth message is deleted alone, perhaps before it arrives, and author 1 of twitch is banned once.
          const deletions = all.filter((_one, n) => n % 5 === 0);
          const acts = deletions.map(({ draft }) =>
            said(act('delete', draft.author!.id, { platform: draft.platform, message_id: draft.message_id }), 250),
          );
          const ban = said(act('ban', '1'), 350);
          const records = [...all.map(({ record }) => record), ...acts, ban];
          records.sort((a, b) => (a.received_at < b.received_at ? -1 : Number(a.received_at > b.received_at)));
          await apply(records, size);
          for (const input of queries) {
            const by_time = records.toSorted((a, b) => Date.parse(a.occurred_at) - Date.parse(b.occurred_at));
            const wanted = by_time.flatMap(({ id }) => {
              const one = all.find(({ record }) => record.id === id);
              if (one === undefined) return [];
              const { draft, second } = one;
              const cleared = draft.platform === 'twitch' && draft.author!.id === '1' && second <= 350;
              const deleted = deletions.includes(one) || cleared;
              const { platform, user_id, from, to, live_chat_id, paid, search } = input;
              const matches =
                (platform === null || platform.split(',').includes(draft.platform)) &&
                (user_id === null || draft.author!.id === user_id) &&
                (from === null || second >= 100) &&
                (to === null || second < 300) &&
                (live_chat_id === null || draft.live_chat_id === live_chat_id) &&
                (paid === null || (draft.paid !== null) === paid) &&
                (input.deleted === null || deleted === input.deleted) &&
                (search === null ||
                  (search === 'has:link'
                    ? draft.text.includes('https')
                    : search === 'from:login_3'
                      ? draft.author!.id === '3'
                      : search === 'from:Name x'
                        ? draft.text.includes('x')
                        : draft.text.toLowerCase().includes(search.toLowerCase())));
              return matches ? [draft.text] : [];
            });
            expect([input, await walk(input, 'older', 7)]).toEqual([input, [...wanted].reverse()]);
            expect([input, await walk(input, 'newer', 3)]).toEqual([input, wanted]);
            expect(await count(input)).toEqual({ count: wanted.length, partial: false });
          }
        },
      ),
      { numRuns: 12 },
    );
  });

  test('a ban marks what was said before it, whenever that arrives, and nothing later', async () => {
    await apply([
      said(message('7', 'before'), 1),
      said(act('timeout', '7', { duration_secs: 60 }), 2),
      said(message('7', 'after'), 3),
      said(message('7', 'late'), 1, 4),
      said(message('8', 'other'), 1, 5),
    ]);
    const { items } = await page();
    expect(items.map(({ message: text, deleted_at, deleted_by }) => [text, deleted_at, deleted_by])).toEqual([
      ['after', null, null],
      ['other', null, null],
      ['late', at(2), 'mod'],
      ['before', at(2), 'mod'],
    ]);
  });

  test('the first message of a person in an own room says so, in the message and in the history', async () => {
    const shared_chat = { channel: chatPerson('5', 'guest'), message_id: 'x', badges: [] };
    const pushed = await apply([
      said(message('7', 'guest', { shared_chat }), 1),
      said(message('7', 'first'), 2),
      said(message('7', 'second'), 3),
    ]);
    const firsts = pushed.map(({ data }) => (JSON.parse(data) as { is_first_message: boolean }).is_first_message);
    expect(firsts).toEqual([false, true, false]);
    expect((await page()).items.map((item) => item.is_first_message)).toEqual([false, true, false]);
  });

  test('texts that PostgreSQL cannot hold, or that look like patterns, are kept and found', async () => {
    await apply([
      said(message('\u0000', 'nul \u0000 and \ud800 alone', { message_id: 'a\u0000b' }), 1),
      said(message('8', '\u202eevil\u200b 😀'), 2),
    ]);
    expect(await texts({})).toEqual(['\u202eevil\u200b 😀', 'nul \ufffd and \ufffd alone']);
    expect(await texts({ search: '\ufffd alone' })).toHaveLength(1);
    expect(await texts({ search: '😀' })).toHaveLength(1);
    expect(await texts({ search: '%' })).toEqual([]);
  });

  test.each([1, 3, 1_000])(
    'an erasure leaves what a rebuild of the erased records makes (batches of %d)',
    async (size) => {
      const tables = [...chatLive.tables];
      await undone(t.db, async (tx) => {
        for (const table of tables) await tx.query(`delete from ${table}`);
        const records = [
          said(message('7', 'mine'), 1),
          said(message('8', '@login_7 hello', { paid: null }), 2),
          said(act('ban', '7', { reason: 'spam' }), 3),
          said(act('ban', '7', { moderator: chatPerson('9', 'other') }), 4),
          said(message('8', 'mine too'), 5),
        ];
        const own = [0, 2, 3].map((n) => records[n]!);
        const erased = records.map((one): LoggedRecord =>
          own.includes(one)
            ? { ...one, raw: ERASED_RAW, subject_erased: true }
            : one === records[1]
              ? { ...one, raw: ERASED_RAW }
              : one,
        );
        const build = async (of: readonly LoggedRecord[]) => {
          for (const batch of inPieces(of, size)) await chatLive.apply(batch, tx, { rebuilding: true, again: true });
        };
        await build(records);
        const changed = erased.filter(({ raw }) => raw === ERASED_RAW);
        expect(await chatLiveEraser.erase(tx, changed)).toBeGreaterThan(0);
        expect(await chatLiveEraser.erase(tx, changed)).toBe(0);
        const live = await rowsOf(tx, tables);
        for (const table of tables) await tx.query(`delete from ${table}`);
        await build(erased);
        expect(live).toEqual(await rowsOf(tx, tables));
        expect(live[0]).toHaveLength(2);
      });
    },
  );

  test('a record that the ledger names without its row is stored, and announced no second time', async () => {
    const records = [said(message('7', 'x'), 1), said(act('ban', '8'), 2)];
    const again = (applied: readonly LoggedRecord[]) =>
      t.db.transaction((tx) => {
        const ids = new Set(applied.map(({ id }) => id));
        return chatLive.apply(records, tx, { rebuilding: false, again: true, applied: ids });
      });
    expect(await again(records)).toEqual([]);
    expect(await texts({})).toEqual(['x']);
    expect((await log()).items).toHaveLength(1);
    expect(await again([])).toEqual([]);
    expect(await count()).toEqual({ count: 1, partial: false });
  });

  test('batches of any size make the same people and the same acts, to the microsecond', async () => {
    const exactly = (micros: string) => `2026-11-01T12:00:00.${micros}Z`;
    const told = (draft: ChatDraft, time: string) => chatRecord(draft, { account_id, at: time, received_at: at(60) });
    const records = [
      told(message('7', 'x'), exactly('000900')),
      told(message('7', 'y'), exactly('000100')),
      told(message('7', 'z'), exactly('000500')),
      told(act('ban', '8', { moderator: null }), exactly('000500')),
      told(act('ban', '8'), '2026-11-01T12:01:00.000900Z'),
    ];
    const built = (size: number) =>
      undone(t.db, async (tx) => {
        for (const batch of inPieces(records, size))
          await chatLive.apply(batch, tx, { rebuilding: true, again: false });
        const mine = 'where account_id = $1';
        return [
          await tx.query(`select first_seen_at::text, last_seen_at::text from platform_users ${mine}`, [account_id]),
          await tx.query(`select id from moderation_log ${mine} and is_listed order by place`, [account_id]),
        ];
      });
    const whole = await built(1_000);
    expect(whole[0]).toEqual([
      { first_seen_at: expect.stringMatching(/\.0001/), last_seen_at: expect.stringMatching(/\.0009/) },
    ]);
    expect(whole[1]).toHaveLength(2);
    expect(await built(1)).toEqual(whole);
    expect(await built(2)).toEqual(whole);
  });

  test('messages and acts go as long after their time as the account keeps them, counts of people stay', async () => {
    const day = 86_400;
    const now = Math.floor((Date.now() - T0) / 1000);
    const old = (n: number) => now - 40 * day + n;
    await t.db.query(`insert into accounts (id, owner_id, created_at) values ($1, $1, now())`, [account_id]);
    await t.db.query(
      `insert into account_limit_overrides (account_id, name, value, set_at) values ($1, 'chat_retention_days', 30, now())`,
      [account_id],
    );
    await t.db.query(
      `insert into checkpoints (projection, source, partition, engine, version, position, built)
       values ('accounts', 'domain-events', 0, 'x', 1, '0', true), ('plans', 'domain-events', 0, 'x', 1, '0', true)`,
    );
    await apply(
      [
        ...Array.from({ length: 1_200 }, (_, n) => said(message('7', `old ${n}`, { platform: 'kick' }), old(n))),
        said(message('7', 'reported late'), old(0), now - day),
        ...Array.from({ length: 5 }, (_, n) => said(message('7', `new ${n}`), now - 60 + n)),
        said(act('ban', '8'), old(2_000)),
        said(act('ban', '9'), now),
      ].sort((a, b) => (a.received_at < b.received_at ? -1 : 1)),
    );
    expect(await count()).toEqual({ count: 1_206, partial: false });
    expect(await sweepChat(t.db)).toBe(1_202);
    expect(await sweepChat(t.db)).toBe(0);
    expect(await texts({})).toEqual(['new 4', 'new 3', 'new 2', 'new 1', 'new 0']);
    expect(await count()).toEqual({ count: 5, partial: false });
    expect((await log()).items).toHaveLength(1);
    const people = 'select sum(message_count)::int as sum from platform_users where account_id = $1';
    expect(await t.db.query(people, [account_id])).toEqual([{ sum: 1_206 }]);
  });

  test('people are found by any part of their names, last seen first, and counted', async () => {
    const named = (id: string, username: string, second: number) =>
      said(message(id, 'x', { author: chatPerson(id, username, `Display_${id}`) }), second);
    await apply([named('1', 'Ada_100%', 1), named('2', 'adam', 2), named('1', 'Ada_100%', 3), named('3', 'eve', 4)]);
    const find = (input: object) =>
      (searchPlatformUsers.run as unknown as (...of: unknown[]) => Promise<{ platform_user_id: string }[]>)(
        { input, caller: { account_id }, context: {}, refuse },
        { db: t.db },
      );
    const ids = async (input: object) => (await find(input)).map((person) => person.platform_user_id);
    expect(await find({ query: ' ADA ' })).toEqual([
      {
        platform: 'twitch',
        platform_user_id: '1',
        username: 'Ada_100%',
        display_name: 'Display_1',
        avatar_url: null,
        last_seen_at: at(3),
        message_count: 2,
      },
      expect.objectContaining({ platform_user_id: '2', message_count: 1 }),
    ]);
    expect(await ids({ query: 'play_' })).toEqual(['3', '1', '2']);
    expect(await ids({ query: '0%' })).toEqual(['1']);
    expect(await ids({ query: 'a' })).toEqual([]);
    expect(await ids({ query: 'ada', limit: 1 })).toEqual(['1']);
    expect(await ids({ query: 'ada', platforms: ['kick'] })).toEqual([]);
    account_id = randomUUID();
    await apply(Array.from({ length: 30 }, (_, n) => named(String(n), 'many', n)));
    expect([await ids({ query: 'many', limit: 1_000 }), await ids({ query: 'many' })]).toMatchObject([
      { length: 25 },
      { length: 10 },
    ]);
    account_id = randomUUID();
    expect(await ids({ query: 'ada' })).toEqual([]);
  });

  test('acts that name an erased person are entries without content, as a rebuild makes them', async () => {
    const [first, second] = [said(act('ban', '7', { moderator: null }), 1), said(act('ban', '7'), 2)];
    await apply([first, second]);
    const erased = { ...first, raw: ERASED_RAW };
    const rows = () => t.db.query('select * from moderation_log where account_id = $1 order by place', [account_id]);
    await t.db.transaction((tx) => chatLiveEraser.erase(tx, [erased]));
    const { items } = await log();
    expect(items).toMatchObject([
      { id: second.id, action: 'ban', moderator_name: 'mod' },
      { id: first.id, action: 'erased', target_user_id: null, moderator_name: null, reason: null, created_at: at(1) },
    ]);
    const before = await rows();
    await t.db.query('delete from moderation_log where account_id = $1', [account_id]);
    expect(await apply([erased, second])).toHaveLength(2);
    expect(await rows()).toEqual(before);
  });
});
