import { LRUCache } from 'lru-cache';
import type { Database } from '../../engines/postgres/port';
import type { SecretBox } from '../secrets/port';
import type { SubjectKey } from './port';

const CACHED_KEYS = 100_000;
/** Longest time for which this node may still use a key that another node erased. */
const STALE_MS = 5000;

/** Encryption context of a wrapped subject key. */
export const contextOf = (key_id: string) => `subject-key:${key_id}`;

/** Caches keys in use and erased keys; reads other nodes' erasures within 5 s. */
export class KnownKeys {
  private readonly by_subject = new LRUCache<string, SubjectKey>({ max: CACHED_KEYS });
  /** Key id to the key. */
  private readonly by_id = new LRUCache<string, Buffer>({ max: CACHED_KEYS });
  /** Recently erased keys, which a concurrent answer must not bring back into the caches. */
  private readonly erased = new LRUCache<string, true>({ max: CACHED_KEYS, ttl: 60_000 });
  private readonly gone = new LRUCache<string, true>({ max: CACHED_KEYS, ttl: 60_000 });
  private checked_at = 0;
  private checking: Promise<void> | undefined;
  private last_erasure = -1;

  constructor(
    private readonly db: Database,
    private readonly box: SecretBox,
  ) {}

  of(subject: string): SubjectKey | undefined {
    return this.by_subject.get(subject);
  }

  byId(key_id: string): Buffer | undefined {
    return this.by_id.get(key_id);
  }

  /** Whether the key was missing or erased at a lookup within the last minute. */
  isGone(key_id: string): boolean {
    return this.gone.has(key_id);
  }

  /** Whether the key was erased within the last minute, also when a concurrent answer still has it. */
  isErased(key_id: string): boolean {
    return this.erased.has(key_id);
  }

  /** Unwraps and caches a key. */
  remember(key_id: string, wrapped_key: string): Buffer {
    const known = this.by_id.get(key_id);
    if (known) return known;
    const key = this.box.open(wrapped_key, contextOf(key_id));
    this.by_id.set(key_id, key);
    return key;
  }

  rememberFor(subject: string, key: SubjectKey): void {
    this.by_subject.set(subject, key);
  }

  missed(key_id: string): void {
    this.gone.set(key_id, true);
  }

  forgetSubject(subject: string): void {
    this.by_subject.delete(subject);
  }

  forget(key_id: string): void {
    this.by_id.delete(key_id);
    this.erased.set(key_id, true);
    this.gone.set(key_id, true);
  }

  /** Called when another node has erased keys: the next caller reads the erasures. */
  doubt(): void {
    this.checked_at = 0;
  }

  /** Whether other nodes' erasures were read completely within the last 5 s. */
  get isCurrent(): boolean {
    const age_ms = Date.now() - this.checked_at;
    return this.checking === undefined && age_ms >= 0 && age_ms < STALE_MS;
  }

  /** Reads other nodes' erasures at most once in 5 s; callers use no key before the result. */
  forgetErased(): Promise<void> | undefined {
    if (this.isCurrent) return undefined;
    this.checking ??= this.check().finally(() => (this.checking = undefined));
    return this.checking;
  }

  private async check(): Promise<void> {
    this.checked_at = Date.now();
    try {
      if (this.last_erasure < 0) {
        // Earlier erasures are irrelevant, because nothing is cached yet.
        const [row] = await this.db.query<{ seq: number }>(
          'select coalesce(max(seq), 0) as seq from subject_key_erasures',
        );
        this.last_erasure = row!.seq;
        return;
      }
      const rows = await this.db.query<{ seq: number; key_id: string }>(
        'select seq, key_id from subject_key_erasures where seq > $1 order by seq',
        [this.last_erasure],
      );
      if (rows.length === 0) return;
      this.last_erasure = rows[rows.length - 1]!.seq;
      const erased = new Set(rows.map(({ key_id }) => key_id));
      for (const key_id of erased) this.forget(key_id);
      for (const [subject, { key_id }] of this.by_subject.entries())
        if (erased.has(key_id)) this.by_subject.delete(subject);
    } catch (error) {
      this.doubt();
      throw error;
    }
  }
}
