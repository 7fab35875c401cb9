import { v7 as uuid } from 'uuid';
import { TOPICS } from '../../domain/common/records';
import type { TestDatabase } from './database';
import { enginesOfEach } from './each';
import { ACCOUNTS, createTally, type Engines, record } from './projections';

/** Who a tally counts for, and the id of what it counts. */
export type Entries = [owner: string, id: string][];

export interface Tallied {
  /** Publishes records over all accounts; returns what the fold must see. */
  publish(count: number, raw?: string): Promise<Entries>;
  /** Appends domain events over three streams; returns what the fold must see. */
  happen(count: number, raw?: string): Promise<Entries>;
  /** How many a tally has counted. */
  total(name?: string): Promise<number>;
}

/** For each test of a file a database of its own with both tallies, and the embedded engines on it. */
export function talliedDatabase(use: (t: TestDatabase, on: Engines) => void, connections = 20): Tallied {
  let t: TestDatabase;
  let on: Engines;
  enginesOfEach(
    async (...given) => {
      [t, on] = given;
      await createTally(t.db);
      await createTally(t.db, 'event_tally');
      use(t, on);
    },
    { connections },
  );
  return {
    async publish(count, raw) {
      const records = Array.from({ length: count }, (_, n) => record(ACCOUNTS[n % ACCOUNTS.length]!, raw ?? n));
      await on.records.append(TOPICS.platform_events, records);
      return records.map(({ account_id, id }) => [account_id, id]);
    },
    async happen(count, raw) {
      const happened: Entries = [];
      for (let n = 0; n < count; n += 1) {
        const [stream, id] = [`thing-${n % 3}`, uuid()];
        const event = { id, type: 'thing:happened', data: { raw: raw ?? null } };
        await on.events.append([{ stream, expected: 'any', events: [event] }], {});
        happened.push([stream, id]);
      }
      return happened;
    },
    async total(name = 'tally') {
      const [row] = await t.db.query(`select coalesce(sum(n), 0)::int as n from ${name}`);
      return row!.n as number;
    },
  };
}
