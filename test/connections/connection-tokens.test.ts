import { clearStaleFlags } from '../../services/connections/connection-flags';
import {
  createConnectionTokens,
  ReconnectRequired,
  TokenUnavailable,
} from '../../services/connections/connection-tokens';
import { type GrantPlace, readGrant, writeGrant, writeRefreshed } from '../../services/connections/connection-grants';
import { writeApp } from '../../services/connections/oauth-apps';
import { writeSeToken } from '../../services/connections/se-tokens';
import { actAsService } from '../../app/service-calls';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { renewKickSubscriptions } from '../../services/connections/vendor-connections';
import { HttpFailed } from '../../vendors/http/port';
import { connections, connectionsStream, type ConnectionEvent } from '../../domain/connections/connections';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { SettingsSchema } from '../../kernel/settings/settings';
import { connections as readModel } from '../../projections/connections/connections';
import {
  AppRefused,
  GrantRefused,
  VendorUnavailable,
  type OAuthApp,
  type OAuthGrant,
  type OAuthVendor,
} from '../../vendors/oauth/port';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { keptLog, silentLog } from '../support/log';

const now = '2026-01-02T03:04:05.000Z';
const account_id = uuid(1);
const connection_id = uuid(2);
const APP = { client_id: 'app', client_secret: 'secret' };

describe('what an account is connected to', () => {
  const given = decider(connections);
  const channel = { account_id, connection_id, platform: 'kick', platform_channel_id: '7' } as const;
  const connected: ConnectionEvent = { type: 'connection:channel_connected', ...channel, connected_at: now };
  const of = { account_id, connection_id, kind: 'channel', platform: 'kick' } as const;
  const required: ConnectionEvent = { type: 'connection:reconnect_required', ...of, required_at: now };

  test('is flagged once, and cleared by a new login or by its people', () => {
    const require = { type: 'connection:require_reconnect', account_id, connection_id, now } as const;
    given([connected]).when(require).then(required);
    given([connected, required]).when(require).thenNothing();
    given([]).when(require).thenFails('CONNECTION_NOT_FOUND');
    given([connected, required])
      .when({ type: 'connection:renew', account_id, connection_id, now })
      .then({ type: 'connection:reconnected', ...of, reconnected_at: now });
    given([connected]).when({ type: 'connection:clear_reconnect', account_id, connection_id, now }).thenNothing();
  });

  test('is one channel and one bot of each platform', () => {
    const other = { ...channel, connection_id: uuid(3), platform_channel_id: '8', now };
    given([connected])
      .when({ type: 'connection:connect_channel', ...other })
      .thenFails('PLATFORM_ALREADY_CONNECTED');
    given([connected])
      .when({ type: 'connection:disconnect', account_id, kind: 'bot', connection_id, now })
      .thenFails('CONNECTION_NOT_FOUND');
    given([connected])
      .when({ type: 'connection:toggle_bot', account_id, platform: 'kick', enabled: true, now })
      .thenNothing();
  });
});

/** A vendor that rotates its refresh tokens: each is good once. */
class RotatingVendor implements OAuthVendor {
  readonly kinds = ['channel'] as const;
  /** What every refresh was asked with. */
  readonly asked: string[] = [];
  current = 'r0';
  lifetime_ms = 3_600_000;
  /** What goes wrong with the next refresh, before or after the vendor has rotated. */
  fault: Error | null = null;
  lost: Error | null = null;
  gate: Promise<unknown> = Promise.resolve();

  scopes = () => ['all'];
  authorizeUrl = () => 'https://vendor.example/';
  exchange = () => Promise.reject(new Error('not exchanged here'));

  async refresh(_app: OAuthApp, refresh_token: string): Promise<OAuthGrant> {
    this.asked.push(refresh_token);
    await this.gate;
    const { fault } = this;
    this.fault = null;
    if (fault !== null) throw fault;
    if (refresh_token !== this.current) throw new GrantRefused('rotated');
    const n = this.asked.length;
    this.current = `r${n}`;
    const { lost } = this;
    this.lost = null;
    if (lost !== null) throw lost;
    return {
      access_token: `a${n}`,
      refresh_token: this.current,
      expires_at: Date.now() + this.lifetime_ms,
      scopes: null,
    };
  }
}

describe('tokens of connections', () => {
  let t: TestDatabase;
  let events: EventStore;
  let keys: SubjectKeys;
  let vendor: RotatingVendor;
  let parts: Omit<Parameters<typeof createConnectionTokens>[0], 'wakeups'>;
  const settings = SettingsSchema.parse({ kick: APP });

  beforeEach(async () => {
    t = await testDatabase(20);
    events = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
    vendor = new RotatingVendor();
    const master_keys = parseMasterKeys(`k:${Buffer.alloc(32, 7).toString('base64')}`);
    const secrets = createSecretBox(master_keys);
    keys = createSubjectKeys({ db: t.db, master_keys });
    const texts = createPersonalTexts(keys);
    const vendors = new Map([['kick', vendor]]);
    parts = { db: t.db, texts, secrets, settings, events, log: silentLog, vendors };
    const channel = { account_id, connection_id, platform: 'kick', platform_channel_id: '7' } as const;
    const connect = { type: 'connection:connect_channel', ...channel } as const;
    await actAsService('test', events)(connections, connectionsStream(account_id), connect);
  });
  afterEach(async () => {
    await events.close();
    await t.drop();
  });

  /** A process of its own: nothing is shared but the database. */
  const node = (db: Database = t.db) => createConnectionTokens({ ...parts, db, wakeups: createLocalWakeups() });
  const keep = (ends_in_ms: number | null, of: Partial<GrantPlace> = {}) => {
    const place = { connection_id, account_id, kind: 'channel', platform: 'kick', app: 'system', client_id: 'app' };
    return writeGrant(parts, {
      place: { ...place, ...of } as GrantPlace,
      owner: { platform_user_id: '7', username: null, display_name: 'Ada', avatar_url: null },
      grant: {
        access_token: 'a0',
        refresh_token: 'r0',
        expires_at: ends_in_ms === null ? null : Date.now() + ends_in_ms,
        scopes: null,
      },
      asked: ['all'],
    });
  };
  /** A token that is old, and ends so soon. */
  const keepEnding = async (ends_in_ms: number, of: Partial<GrantPlace> = {}) => {
    await keep(3_600_000, of);
    await t.db.query(
      `update connection_grants
       set stored_at = now() - interval '1 hour', expires_at = now() + make_interval(secs => $1)`,
      [ends_in_ms / 1000],
    );
  };
  const flagged = async () => {
    const { state } = await aggregateCacheOf(events).load(connections, connectionsStream(account_id));
    return state.channels.get('kick')!.reconnect_required;
  };
  const stored = async () => (await readGrant(parts, connection_id))!;

  test('are given as they are, and exchanged before they end; nothing of them is readable in the row', async () => {
    await keep(3_600_000);
    expect(await node().token(connection_id)).toBe('a0');
    expect(vendor.asked).toEqual([]);
    await keepEnding(1_000);
    expect(await node().token(connection_id)).toBe('a1');
    expect(await stored()).toMatchObject({ access_token: 'a1', refresh_token: 'r1', display_name: 'Ada' });
    const rows = await t.db.query('select connection_grants::text as text from connection_grants');
    expect(JSON.stringify(rows)).not.toMatch(/"a1|r1\b|Ada/);
  });

  test('are exchanged once by forty callers on four nodes, which all get the new one', async () => {
    await keepEnding(1_000);
    const nodes = [node(), node(), node(), node()];
    const asked = Array.from({ length: 40 }, (_, n) => nodes[n % 4]!.token(connection_id));
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['a1']));
    expect(vendor.asked).toEqual(['r0']);
  });

  test('that the vendor has refused are exchanged at once, and who asks with an older one gets the newer', async () => {
    await keep(3_600_000);
    const [one, other] = [node(), node()];
    expect(await one.token(connection_id, 'a0')).toBe('a1');
    expect(await other.token(connection_id, 'a0')).toBe('a1');
    expect(vendor.asked).toEqual(['r0']);
  });

  test('that the vendor keeps refusing are not exchanged for ever', async () => {
    await keep(3_600_000);
    const fresh = await node().token(connection_id, 'a0');
    await expect(node().token(connection_id, fresh)).rejects.toThrow(ReconnectRequired);
    expect([vendor.asked, await flagged()]).toEqual([['r0'], true]);
  });

  test('flag their connection when the vendor refuses them for good, and nobody asks it again', async () => {
    await keepEnding(1_000);
    vendor.current = 'another';
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect(await flagged()).toBe(true);
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect(vendor.asked).toEqual(['r0']);
  });

  test('flag their connection also where a process died between the mark and the event', async () => {
    await keepEnding(1_000);
    await t.db.query('update connection_grants set dead = true');
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect(await flagged()).toBe(true);
  });

  test('are used to their end while the vendor is away, and flag nothing', async () => {
    await keepEnding(30_000);
    vendor.fault = new VendorUnavailable('kick');
    const tokens = node();
    expect(await tokens.token(connection_id)).toBe('a0');
    // Not each caller asks it again.
    expect(await tokens.token(connection_id)).toBe('a0');
    expect(vendor.asked).toHaveLength(1);
    await expect(tokens.token(connection_id, 'a0')).rejects.toThrow(TokenUnavailable);
    expect(await flagged()).toBe(false);
    expect(await node().token(connection_id)).toBe('a2');
  });

  test('are not given up when the secret of the app is wrong', async () => {
    await keepEnding(1_000);
    vendor.fault = new AppRefused('wrong');
    await expect(node().token(connection_id)).rejects.toThrow(TokenUnavailable);
    expect(await flagged()).toBe(false);
    expect(await node().token(connection_id)).toBe('a2');
  });

  test('that were answered while the database was away are kept when it is back', async () => {
    await keepEnding(1_000);
    let failures = 3;
    const failing: Database = Object.assign(Object.create(t.db) as Database, {
      query: (text: string, values?: readonly unknown[], name?: string) => {
        if (name === 'connection-grant-refreshed' && failures-- > 0) return Promise.reject(new Error('away'));
        return t.db.query(text, values, name);
      },
    });
    expect(await node(failing).token(connection_id)).toBe('a1');
    expect(await node().token(connection_id)).toBe('a1');
    expect(vendor.asked).toEqual(['r0']);
  });

  test('of a process that was away while another tried are kept, and mend what the other had flagged', async () => {
    await keepEnding(1_000);
    let open = () => undefined as void;
    vendor.gate = new Promise<void>((resolve) => (open = resolve));
    const slow = node().token(connection_id);
    while (vendor.asked.length === 0) await new Promise((wait) => setTimeout(wait, 5));
    // Its right to ask is over, and it does not know.
    await t.db.query("update connection_grants set refreshing_until = now() - interval '1 second'");
    vendor.gate = Promise.resolve();
    vendor.fault = new GrantRefused('used already');
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect(await flagged()).toBe(true);
    open();
    expect(await slow).toBe('a2');
    expect([await flagged(), await node().token(connection_id)]).toEqual([false, 'a2']);
  });

  test('that are good again clear the flag later, where who stored them died before saying so', async () => {
    const of = { account_id, connection_id, platform: 'kick' } as const;
    await feed(t.db, readModel, [
      { type: 'connection:channel_connected', ...of, platform_channel_id: '7', connected_at: now },
      { type: 'connection:reconnect_required', ...of, kind: 'channel', required_at: now },
    ]);
    await keepEnding(1_000);
    const kept = await stored();
    vendor.fault = new GrantRefused('used already');
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect([await clearStaleFlags(parts), await flagged()]).toEqual([0, true]);
    const grant = { access_token: 'a9', refresh_token: 'r9', expires_at: null, scopes: null };
    expect(await writeRefreshed(parts, kept, { grant, after_refusal: false })).toBe('revived');
    // Its own process may be about to say so.
    expect([await clearStaleFlags(parts), await flagged()]).toEqual([0, true]);
    await t.db.query("update connection_grants set stored_at = now() - interval '2 minutes'");
    expect([await clearStaleFlags(parts), await flagged()]).toEqual([1, false]);
    expect(await node().token(connection_id)).toBe('a9');
  });

  test('that are lost with a crash after the vendor has rotated end in a flag, never in a loop', async () => {
    await keepEnding(1_000);
    vendor.lost = new VendorUnavailable('kick');
    await expect(node().token(connection_id)).rejects.toThrow(TokenUnavailable);
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect([vendor.asked, await flagged()]).toEqual([['r0', 'r0'], true]);
  });

  test('go with the person whose they are, and flag what they were of', async () => {
    await keep(3_600_000);
    await keys.erase('kick:7');
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    expect(await flagged()).toBe(true);
  });

  test('are exchanged with the app that they were given to, and with no other', async () => {
    await keepEnding(1_000, { app: 'account' });
    await expect(node().token(connection_id)).rejects.toThrow(ReconnectRequired);
    await keepEnding(1_000, { app: 'account' });
    await writeApp(parts, { owner: account_id, platform: 'kick', app: APP });
    expect(await node().token(connection_id)).toBe('a1');
  });

  test('of tips are given until they are refused', async () => {
    await writeSeToken(parts, uuid(9), 'tips');
    expect(await node().token(uuid(9), 'older')).toBe('tips');
    await expect(node().token(uuid(9), 'tips')).rejects.toThrow(ReconnectRequired);
    await expect(node().token(uuid(9))).rejects.toThrow(ReconnectRequired);
  });
});

test('what Kick has dropped is asked for again, whatever stops one channel', async () => {
  const channel = (n: number, client_id: string | null = 'app') => ({
    ...{ connection_id: uuid(n), account_id, platform: 'kick' as const, kind: 'channel' as const, client_id },
    ...{ platform_channel_id: String(n), bot_enabled: true, since: now },
  });
  const asked: string[] = [];
  const parts = {
    living: { of: async () => [channel(1), channel(2), channel(3), channel(4, null)], onChange: () => () => undefined },
    tokens: {
      async token(id: string, refused?: string) {
        if (id === uuid(1)) throw new ReconnectRequired(id);
        return refused === undefined ? `old ${id}` : `new ${id}`;
      },
    },
    kick: {
      async ensure(token: string, note: (ids: string[]) => Promise<void>) {
        if (token === `old ${uuid(3)}`) throw new HttpFailed('api.kick.com', 401);
        if (token === `old ${uuid(2)}`) throw new Error('Kick refuses');
        asked.push(token);
        await note(['a']);
      },
      end: async () => undefined,
    },
  };
  const stored: unknown[] = [];
  const db = { query: async (_sql: string, values: readonly unknown[] = []) => (stored.push(values), []) };
  const log = keptLog();
  expect(await renewKickSubscriptions({ ...parts, db }, log, new AbortController().signal)).toBe(1);
  expect([asked, log.lines.length]).toEqual([[`new ${uuid(3)}`], 1]);
  // The ids, then that nothing was refused.
  expect(stored).toEqual([
    ['kick', '3', 'app', ['a']],
    ['kick', '3', 'app', null],
  ]);
});

test('the read model of connections bears its events twice', async () => {
  const t = await testDatabase();
  const of = { account_id, connection_id, platform: 'kick' } as const;
  await feed(
    t.db,
    readModel,
    [
      { type: 'connection:channel_connected', ...of, platform_channel_id: '7', connected_at: now },
      { type: 'connection:reconnect_required', ...of, kind: 'channel', required_at: now },
      { type: 'connection:bot_toggled', ...of, enabled: false, toggled_at: now },
    ],
    2,
  );
  expect(await t.db.query('select reconnect_required, bot_enabled from channel_connections')).toEqual([
    { reconnect_required: true, bot_enabled: false },
  ]);
  await t.drop();
});
