import { randomUUID } from 'node:crypto';
import { createTokens } from '../../access/authentication/tokens/jwt';
import { SHOP_SECRET } from '../../services/connections/connection-lookup';
import {
  keepWebhookSecret,
  newWebhookSecret,
  webhookSecretContext,
} from '../../services/automation/automations/webhooks';
import { identityHash } from '../../services/identity/identities';
import { ENCRYPTED_COLUMNS } from '../../cli/runtime/encrypted-columns';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { keyUses, rotateKeys } from '../../privacy/secrets/rotation';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { testDatabase, type TestDatabase } from '../support/database';

const key = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;
const OLD = parseMasterKeys(key('old', 1));
const BOTH = parseMasterKeys(`${key('new', 2)},${key('old', 1)}`);
const NEW = parseMasterKeys(key('new', 2));
const secrets = createSecretBox(BOTH);
const SUBJECTS = Array.from({ length: 1200 }, (_, n) => `kick:${n}`);

describe('rotating the master keys', () => {
  let t: TestDatabase;
  let before: Map<string, { key_id: string; key: Buffer }>;
  let identity: string;
  const webhook = { automation_id: randomUUID(), account_id: randomUUID() };
  const webhook_secrets = [newWebhookSecret(), newWebhookSecret()];
  beforeEach(async () => {
    t = await testDatabase(6);
    before = await createSubjectKeys({ db: t.db, master_keys: OLD }).forWriting(SUBJECTS);
    const old = createSecretBox(OLD);
    await createTokens({ db: t.db, secrets: old });
    identity = await identityHash({ db: t.db, secrets: old }, 'twitch', '42');
    await t.db.query('insert into connection_secrets (connection_id, sealed) values (gen_random_uuid(), $1)', [
      old.seal('shop', SHOP_SECRET),
    ]);
    for (const made of webhook_secrets) await keepWebhookSecret({ db: t.db, secrets: old }, webhook, made);
  });
  afterEach(() => t.drop());

  const rotate = (more: Partial<Parameters<typeof rotateKeys>[0]> = {}) =>
    rotateKeys({ db: t.db, secrets, places: ENCRYPTED_COLUMNS, batch: 100, ...more });
  const uses = async () => {
    const found: Record<string, Record<string, number>> = {};
    for (const { key_id, what, count } of await keyUses(t.db, ENCRYPTED_COLUMNS)) (found[key_id] ??= {})[what] = count;
    return found;
  };
  const EVERYTHING = {
    'subject keys': 1200,
    'subject hash keys': 1,
    'token signing keys': 1,
    'shop secrets': 1,
    'login identity keys': 1,
    'webhook secrets': 2,
  };

  test('everything is under the first key afterwards, and opens without the old one; again it finds nothing to do', async () => {
    expect(await uses()).toEqual({ old: EVERYTHING });
    const seen: number[] = [];
    expect(await rotate({ onProgress: (done, total) => seen.push(done / total) })).toEqual({
      rewrapped: 1206,
      unreadable: [],
    });
    expect(seen[seen.length - 1]).toBe(1);
    expect(await uses()).toEqual({ new: EVERYTHING });
    const after = createSubjectKeys({ db: t.db, master_keys: NEW });
    expect(await after.forWriting(SUBJECTS)).toEqual(before);
    await createTokens({ db: t.db, secrets: createSecretBox(NEW) });
    const [shop] = await t.db.query<{ sealed: string }>('select sealed from connection_secrets');
    expect(createSecretBox(NEW).open(shop!.sealed, SHOP_SECRET).toString()).toBe('shop');
    const webhooks = await t.db.query<{ sealed: string }>('select sealed from automation_webhook_secrets');
    const opened = webhooks.map(({ sealed }) =>
      createSecretBox(NEW).open(sealed, webhookSecretContext(webhook.automation_id)).toString(),
    );
    expect(opened.sort()).toEqual(webhook_secrets.map(({ secret }) => secret).sort());
    expect(await identityHash({ db: t.db, secrets: createSecretBox(NEW) }, 'twitch', '42')).toBe(identity);
    expect(await rotate()).toEqual({ rewrapped: 0, unreadable: [] });
  });

  test('cut off on the way it goes on where it was', async () => {
    const cut = new Error('cut off');
    const until = (limit: number) => (done: number) => {
      if (done >= limit) throw cut;
    };
    await expect(rotate({ onProgress: until(300) })).rejects.toBe(cut);
    expect(await uses()).toMatchObject({ new: { 'subject keys': 300 }, old: { 'subject keys': 900 } });
    expect((await rotate()).rewrapped).toBe(906);
    expect(await uses()).toEqual({ new: EVERYTHING });
    expect(await createSubjectKeys({ db: t.db, master_keys: NEW }).forWriting(SUBJECTS)).toEqual(before);
  });

  test('two at once, beside erasures and new keys of a process that still writes with the old one', async () => {
    const other = createSubjectKeys({ db: t.db, master_keys: parseMasterKeys(`${key('old', 1)},${key('new', 2)}`) });
    const late = Array.from({ length: 200 }, (_, n) => `kick:late-${n}`);
    const [first, second] = await Promise.all([
      rotate({ batch: 10 }),
      rotate({ batch: 10 }),
      ...SUBJECTS.slice(0, 50).map((subject) => other.erase(subject)),
      ...late.map((subject) => other.forWriting([subject])),
    ]);
    expect([first.unreadable, second.unreadable]).toEqual([[], []]);
    await rotate();
    expect(await uses()).toEqual({ new: { ...EVERYTHING, 'subject keys': 1350 } });
    const after = await createSubjectKeys({ db: t.db, master_keys: NEW }).forWriting(SUBJECTS);
    for (const subject of SUBJECTS.slice(50)) expect(after.get(subject)).toEqual(before.get(subject));
    for (const subject of SUBJECTS.slice(0, 50)) expect(after.get(subject)).not.toEqual(before.get(subject));
  });

  test('what no listed key opens is told and left as it is, and stops nothing else', async () => {
    const foreign = createSecretBox(parseMasterKeys(key('lost', 9))).seal('x', SHOP_SECRET);
    const damaged = createSecretBox(OLD).seal('x', 'something else');
    await t.db.query(
      `insert into connection_secrets (connection_id, sealed)
       values ('00000000-0000-4000-8000-000000000001', $1), ('00000000-0000-4000-8000-000000000002', $2)`,
      [foreign, damaged],
    );
    const { rewrapped, unreadable } = await rotate();
    expect(rewrapped).toBe(1206);
    expect(unreadable).toEqual([
      {
        what: 'shop secrets',
        key: '00000000-0000-4000-8000-000000000001',
        reason: expect.stringContaining('master key lost'),
      },
      {
        what: 'shop secrets',
        key: '00000000-0000-4000-8000-000000000002',
        reason: expect.stringContaining('does not open'),
      },
    ]);
    expect(await uses()).toEqual({ new: EVERYTHING, old: { 'shop secrets': 1 }, lost: { 'shop secrets': 1 } });
  });
});
