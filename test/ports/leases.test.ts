import { createPostgresLeases } from '../../engines/leases/postgres';
import { type Lease, LeaseLost } from '../../engines/leases/port';
import { type TestDatabase, testDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { PATIENCE_MS } from '../support/patience';

const log = silentLog;
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe('leases', () => {
  let t: TestDatabase;
  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t.drop());

  test('eight candidates: one holds it; when it stops, another has it at once and with a greater token', async () => {
    const nodes = Array.from({ length: 8 }, () => createPostgresLeases({ db: t.db, log, ttl_ms: 600 }));
    const holding = new Map<number, Lease>();
    let most = 0;
    const tokens: number[] = [];
    const campaigns = nodes.map((node, i) =>
      node.campaign('one', async (lease) => {
        holding.set(i, lease);
        tokens.push(lease.token);
        most = Math.max(most, holding.size);
        await aborted(lease.signal);
        holding.delete(i);
      }),
    );
    for (let turn = 0; turn < 4; turn += 1) {
      await until(() => holding.size === 1, 'a holder');
      const [holder] = holding.keys();
      await campaigns[holder!]!.stop();
    }
    await until(() => holding.size === 1, 'a last holder');
    await Promise.all(nodes.map((node) => node.close()));
    expect(most).toBe(1);
    expect(tokens.length).toBeGreaterThanOrEqual(5);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  test('a holder that cannot renew stops by itself before another may begin, and cannot write any more', async () => {
    let cut = false;
    const cuttable = {
      query: ((...args: Parameters<typeof t.db.query>) =>
        cut ? Promise.reject(new Error('cut off')) : t.db.query(...args)) as typeof t.db.query,
    };
    const first = createPostgresLeases({ db: cuttable, log, ttl_ms: 900 });
    const second = createPostgresLeases({ db: t.db, log, ttl_ms: 900 });
    let old: Lease | undefined;
    let stopped_at = 0;
    let began_at = 0;
    first.campaign('cut', async (lease) => {
      old = lease;
      await lease.fence(t.db);
      await aborted(lease.signal);
      stopped_at = performance.now();
    });
    await until(() => old !== undefined, 'the first holder');
    second.campaign('cut', async (lease) => {
      began_at = performance.now();
      await aborted(lease.signal);
    });
    cut = true;
    await until(() => began_at > 0, 'the second holder');
    expect(stopped_at).toBeGreaterThan(0);
    expect(stopped_at).toBeLessThanOrEqual(began_at);
    await expect(t.db.transaction((tx) => old!.fence(tx))).rejects.toThrow(LeaseLost);
    cut = false;
    await Promise.all([first.close(), second.close()]);
  });

  test('while an effect is being written nobody takes the lease over', async () => {
    const node = createPostgresLeases({ db: t.db, log, ttl_ms: 400 });
    const other = createPostgresLeases({ db: t.db, log, ttl_ms: 400 });
    const order: string[] = [];
    let begun = false;
    const campaign = node.campaign('fence', async (lease) => {
      await t.db.transaction(async (tx) => {
        await lease.fence(tx);
        begun = true;
        await aborted(lease.signal); // longer than the lease lasts: renewals wait for this transaction
        await new Promise((resolve) => setTimeout(resolve, 300));
        order.push('written');
      });
    });
    await until(() => begun, 'the first holder');
    other.campaign('fence', async () => void order.push('taken'));
    await until(() => order.includes('taken'), 'the second holder');
    expect(order.slice(0, 2)).toEqual(['written', 'taken']);
    await campaign.stop();
    await Promise.all([node.close(), other.close()]);
  });
});
