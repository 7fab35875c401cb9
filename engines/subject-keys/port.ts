/** A data key of one person. */
export interface SubjectKey {
  key_id: string;
  /** 32 bytes, AES-256-GCM. */
  key: Buffer;
}

/**
 * Keys that make one person's data readable; erasing a subject's key makes it unreadable everywhere, backups and
 * replays included. Design §5.
 */
export interface SubjectKeys {
  /** Keys of these subjects, made (durably) where missing. */
  forWriting(subjects: readonly string[]): Promise<Map<string, SubjectKey>>;
  /** Keys by key id; a key that was erased is absent. */
  forReading(key_ids: readonly string[]): Promise<Map<string, Buffer>>;
  /** Ids of the subject's keys; makes none. */
  keysOf(subject: string): Promise<string[]>;
  /** Destroys every key of the subject; returns how many. */
  erase(subject: string): Promise<number>;
}
