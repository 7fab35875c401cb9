import { randomBytes, randomUUID } from 'node:crypto';
import { LOCKS } from '../../engines/locks/port';
import { Collector } from '../../lib/async/collector';
import { retry } from '../../lib/async/retry';
import type { Database } from '../../engines/postgres/port';
import { isPassing } from '../../kernel/failures';
import { createSecretBox } from '../secrets/box';
import type { MasterKeys } from '../secrets/master-keys';
import type { SecretBox } from '../secrets/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { shown, SubjectHashes } from './hashes';
import { contextOf, KnownKeys } from './known-keys';
import type { SubjectKey, SubjectKeys } from './port';

/**
 * Tables that `lumio backup` omits and that are exported separately (design §5). The list of erased keys, which reveals
 * no personal data, is in both.
 */
export const SUBJECT_KEY_TABLES = ['subject_keys', 'subject_hash_key'] as const;

const MAKE_ATTEMPTS = 8;
const MAX_IN_ONE_TRIP = 1000;
const RETRY_FOR_MS = 10_000;

// Both halves use one snapshot: a subject that another process creates concurrently may be in neither, and is requested
// again.
const FIND_OR_MAKE = `
  with wanted as (
    select * from unnest($1::uuid[], $2::bytea[], $3::text[], $4::timestamptz[])
      w (key_id, subject_hash, wrapped_key, expires_at)
  ), found as (
    select s.subject_hash, s.key_id, s.wrapped_key from wanted join subject_keys s using (subject_hash)
  ), made as (
    insert into subject_keys (key_id, subject_hash, wrapped_key, expires_at)
    select key_id, subject_hash, wrapped_key, expires_at from wanted
      where subject_hash not in (select subject_hash from found)
    order by subject_hash
    on conflict (subject_hash) do nothing
    returning subject_hash, key_id, wrapped_key
  )
  select encode(subject_hash, 'hex') as subject_hash, key_id, wrapped_key from (table found union all table made) keys`;

export interface SubjectKeysOptions {
  db: Database;
  master_keys: MasterKeys;
  /** Notifies other nodes of an erasure at once; without it they read erasures within 5 s. */
  wakeups?: Wakeups;
}

/**
 * Subject keys in PostgreSQL, wrapped by a master key; the subject's name is stored only as a keyed hash. Keys in use
 * are cached. An erasure reaches this node's cache at once and every other node's within 5 s: data that they wrote for
 * the subject meanwhile are encrypted under the destroyed key and so erased with the rest.
 */
export function createSubjectKeys(options: SubjectKeysOptions): SubjectKeys {
  return new PostgresSubjectKeys(options);
}

interface KeyRow {
  subject_hash: string;
  key_id: string;
  wrapped_key: string;
}

/** A subject whose key is requested. */
interface Wanted {
  subject: string;
  expires_at: Date | undefined;
}

class PostgresSubjectKeys implements SubjectKeys {
  private readonly box: SecretBox;
  private readonly hashes: SubjectHashes;
  private readonly known: KnownKeys;
  /** Shares a round trip among many callers. */
  private readonly making = new Collector<Wanted, SubjectKey>({
    take: (waiting) => {
      const group = waiting.slice(0, MAX_IN_ONE_TRIP);
      return { count: group.length, group };
    },
    send: async (group) => {
      const made = await this.findOrMake(new Map(group.map(({ subject, expires_at }) => [subject, expires_at])));
      return group.map(({ subject }) => made.get(subject)!);
    },
  });

  constructor(private readonly options: SubjectKeysOptions) {
    this.box = createSecretBox(options.master_keys);
    this.hashes = new SubjectHashes(options.db, this.box);
    this.known = new KnownKeys(options.db, this.box);
    options.wakeups?.on('subject-keys', () => this.known.doubt());
  }

  async forWriting(subjects: readonly string[], expires_at?: Date): Promise<Map<string, SubjectKey>> {
    await this.known.forgetErased();
    const keys = new Map<string, SubjectKey>();
    const missing: Promise<void>[] = [];
    for (const subject of new Set(subjects)) {
      const known = this.known.of(subject);
      if (known) keys.set(subject, known);
      else missing.push(this.making.add({ subject, expires_at }).then((key) => void keys.set(subject, key)));
    }
    if (missing.length > 0) await Promise.all(missing);
    return keys;
  }

  atHand(subjects: readonly string[]): ReadonlyMap<string, SubjectKey> | undefined {
    if (!this.known.isCurrent) return undefined;
    const keys = new Map<string, SubjectKey>();
    for (const subject of subjects) {
      const key = this.known.of(subject);
      if (key === undefined) return undefined;
      keys.set(subject, key);
    }
    return keys;
  }

  async forReading(key_ids: readonly string[]): Promise<Map<string, Buffer>> {
    await this.known.forgetErased();
    const keys = new Map<string, Buffer>();
    const missing: string[] = [];
    for (const key_id of new Set(key_ids)) {
      const known = this.known.byId(key_id);
      if (known) keys.set(key_id, known);
      else if (!this.known.isGone(key_id)) missing.push(key_id);
    }
    if (missing.length === 0) return keys;
    const rows = await this.options.db.query<{ key_id: string; wrapped_key: string }>(
      'select key_id, wrapped_key from subject_keys where key_id = any ($1::uuid[])',
      [missing],
      'subject-keys-read',
    );
    for (const row of rows) {
      if (!this.known.isErased(row.key_id)) keys.set(row.key_id, this.known.remember(row.key_id, row.wrapped_key));
    }
    for (const key_id of missing) if (!keys.has(key_id)) this.known.missed(key_id);
    return keys;
  }

  async keysOf(subject: string): Promise<string[]> {
    const rows = await this.options.db.query<{ key_id: string }>(
      'select key_id from subject_keys where subject_hash = $1',
      [await this.hashes.of(subject)],
    );
    return rows.map(({ key_id }) => key_id);
  }

  async erase(subject: string): Promise<number> {
    const erased = await this.destroy('subject_hash = $1', [await this.hashes.of(subject)]);
    this.known.forgetSubject(subject);
    return erased;
  }

  expire(): Promise<number> {
    return this.destroy('expires_at <= now()', []);
  }

  async hashesOf(subjects: readonly string[]): Promise<Map<string, string>> {
    const hashes = new Map<string, string>();
    for (const subject of subjects) hashes.set(subject, shown(await this.hashes.of(subject)));
    return hashes;
  }

  private async destroy(which: string, values: readonly unknown[]): Promise<number> {
    const erased = await this.options.db.transaction(async (tx) => {
      // Serialises erasures, so that their numbers are in commit order and no reader misses one.
      await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
      return tx.query<{ key_id: string }>(
        `with gone as (delete from subject_keys where ${which} returning key_id)
         insert into subject_key_erasures (key_id) select key_id from gone returning key_id`,
        values,
      );
    });
    for (const { key_id } of erased) this.known.forget(key_id);
    this.options.wakeups?.notify('subject-keys');
    return erased.length;
  }

  private async findOrMake(subjects: ReadonlyMap<string, Date | undefined>): Promise<Map<string, SubjectKey>> {
    const made = new Map<string, SubjectKey>();
    let open = new Map<string, string>();
    for (const subject of subjects.keys()) open.set((await this.hashes.of(subject)).toString('hex'), subject);
    for (let answers = 0; open.size > 0; answers += 1) {
      if (answers === MAKE_ATTEMPTS) throw new Error(`${open.size} subject keys could neither be found nor made`);
      const ids = [...open.keys()].map(() => randomUUID());
      const wrapped = ids.map((id) => this.box.seal(randomBytes(32), contextOf(id)));
      const hashes = [...open.keys()].map((hash) => Buffer.from(hash, 'hex'));
      const expiries = [...open.values()].map((subject) => subjects.get(subject) ?? null);
      const values = [ids, hashes, wrapped, expiries];
      // Safe to repeat after an unknown outcome, because the statement finds keys that were created.
      const ask = () => this.options.db.query<KeyRow>(FIND_OR_MAKE, values, 'subject-keys-make');
      const rows = await retry(ask, { first_ms: 50, most_ms: 500, within_ms: RETRY_FOR_MS, passing: isPassing });
      for (const row of rows) {
        if (this.known.isErased(row.key_id)) continue;
        const subject = open.get(row.subject_hash)!;
        const hash = shown(Buffer.from(row.subject_hash, 'hex'));
        const key = { key_id: row.key_id, key: this.known.remember(row.key_id, row.wrapped_key), hash };
        this.known.rememberFor(subject, key);
        made.set(subject, key);
      }
      open = new Map([...open].filter(([, subject]) => !made.has(subject)));
    }
    return made;
  }
}
