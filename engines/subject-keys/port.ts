/** A data key of one person. */
export interface SubjectKey {
  key_id: string;
  /** 32 bytes, AES-256-GCM. */
  key: Buffer;
  /** The subject's keyed hash, see {@link SubjectKeys.hashesOf}. */
  hash: string;
}

/**
 * Keys that make one person's data readable; erasing a subject's key makes it unreadable everywhere, backups and
 * replays included. Design §5.
 */
export interface SubjectKeys {
  /** Keys of these subjects; missing ones are made, durably. A key that is made with `expires_at` is destroyed then. */
  forWriting(subjects: readonly string[], expires_at?: Date): Promise<Map<string, SubjectKey>>;
  /** The same keys, where all of them are known and nobody need be asked; else undefined. */
  atHand?(subjects: readonly string[]): ReadonlyMap<string, SubjectKey> | undefined;
  /** Keys by key id; a key that was erased is absent. */
  forReading(key_ids: readonly string[]): Promise<Map<string, Buffer>>;
  /** Ids of the subject's keys; makes none. */
  keysOf(subject: string): Promise<string[]>;
  /** Destroys every key of the subject; returns how many. */
  erase(subject: string): Promise<number>;
  /** Destroys every key whose time is over; returns how many. */
  expire(): Promise<number>;
  /**
   * What stands for a subject where it must not be read: 128 bits of a keyed hash as base64url. Knowing a subject, only
   * who holds this database's keys can tell its hash.
   */
  hashesOf(subjects: readonly string[]): Promise<Map<string, string>>;
}

/** A text in a row, sealed under a person's key. */
export interface SealedText {
  key_id: string;
  /** Base64. */
  sealed: string;
}

/** Personal texts of rows that no event carries: names that change by a vendor's will. */
export interface PersonalTexts {
  /**
   * `context` binds the text to its place: in another one it does not open. A key that is made for it is destroyed
   * after `expires_at`.
   */
  seal(subject: string, text: string, context: string, expires_at?: Date): Promise<SealedText>;
  /** Null once the person was erased, or the key's time is over. @throws Error when the key store does not answer */
  open(text: SealedText, context: string): Promise<string | null>;
  /** The same for many at once, in their order. */
  openAll(texts: readonly (SealedText & { context: string })[]): Promise<(string | null)[]>;
}
