import pg from 'pg';
import { v7 } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../domain/common/records';
import { createPostgresBroker } from '../engines/broker/postgres/broker';
import { PostgresDatabase } from '../engines/postgres/pool';
import { createRecordLog } from '../engines/records/log';
import { parseMasterKeys } from '../privacy/secrets/master-keys';
import { createSubjectKeys } from '../privacy/subject-keys/postgres';
import { createLocalWakeups } from '../engines/wakeups/local';

const TYPES = ['kick:follower', 'kick:subscribe', 'kick:gift', 'trovo:subscribe', 'trovo:spell', 'twitch:follower'];
const DAY_MS = 86_400_000;

/**
 * Makes event number `number` of a realistic history: about 300 bytes of payload, an external id, one of 500 people, a
 * time within the last 20 days. Every hundredth repeats the previous one.
 */
export function historic(number: number, accounts: readonly string[], total: number, now: number): RecordEnvelope {
  const n = number % 100 === 99 ? number - 1 : number;
  const type = TYPES[n % TYPES.length]!;
  const platform = type.slice(0, type.indexOf(':'));
  const person = 100_000 + (n % 500);
  const at = new Date(now - Math.floor((1 - n / total) * 20 * DAY_MS)).toISOString();
  const raw = JSON.stringify({
    user_id: String(person),
    broadcaster: { user_id: 123456789, username: 'lumio_demo', is_verified: true, channel_slug: 'lumio-demo' },
    follower: { user_id: person, username: `viewer_${person}`, profile_picture: `https://example.com/${person}.webp` },
    created_at: at,
    n,
  });
  return {
    id: v7(),
    account_id: accounts[n % accounts.length]!,
    type,
    platform,
    external_id: `${platform}:${n.toString(36).padStart(10, '0')}`,
    occurred_at: at,
    received_at: at,
    subject: `${platform}:${person}`,
    raw,
    trace: null,
  };
}

/**
 * Appends events `first` to `first + count` of `accounts` to the record log of a running installation, as its ingest
 * does.
 */
export async function appendHistory(
  url: string,
  secrets_keys: string,
  accounts: readonly string[],
  count: number,
  first = 0,
): Promise<void> {
  const db = new PostgresDatabase({ url, name: 'bench history', size: 4 });
  const broker = createPostgresBroker({ pool: db.pool, wakeups: createLocalWakeups() });
  const subject_keys = createSubjectKeys({ db, master_keys: parseMasterKeys(secrets_keys) });
  const log = createRecordLog({ broker, subject_keys });
  const now = Date.now();
  for (let n = 0; n < count; n += 1000) {
    const length = Math.min(1000, count - n);
    const records = Array.from({ length }, (_, i) => historic(first + n + i, accounts, first + count, now));
    await log.append(TOPICS.platform_events, records);
  }
  await broker.close();
  await db.close();
}

/** Runs one query on a connection of its own. */
export async function ask<R extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<R[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<R>(text, values)).rows;
  } finally {
    await client.end();
  }
}
