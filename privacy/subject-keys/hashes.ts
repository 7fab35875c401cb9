import { createHmac, randomBytes } from 'node:crypto';
import type { Database } from '../../engines/postgres/port';
import type { SecretBox } from '../secrets/port';

/** Encryption context of the key of the subjects' hashes. */
export const HASH_KEY = 'subject-hash-key';

/** Keyed hashes of subjects: the only form in which a subject's name is stored. */
export class SubjectHashes {
  private key: Promise<Buffer> | undefined;

  constructor(
    private readonly db: Database,
    private readonly box: SecretBox,
  ) {}

  async of(subject: string): Promise<Buffer> {
    this.key ??= this.load().catch((error: Error) => {
      this.key = undefined;
      throw error;
    });
    return createHmac('sha256', await this.key)
      .update(subject)
      .digest();
  }

  /** Loads the key, made once for the database; not a master key itself, so that hashes outlive a rotation. */
  private async load(): Promise<Buffer> {
    const fresh = this.box.seal(randomBytes(32), HASH_KEY);
    await this.db.query('insert into subject_hash_key (wrapped_key) values ($1) on conflict do nothing', [fresh]);
    const [row] = await this.db.query<{ wrapped_key: string }>('select wrapped_key from subject_hash_key');
    return this.box.open(row!.wrapped_key, HASH_KEY);
  }
}

/** Text of a hash in records and events. */
export const shown = (hash: Buffer): string => hash.subarray(0, 16).toString('base64url');
