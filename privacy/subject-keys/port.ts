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
  /** Keys of these subjects; missing ones are created durably. A key created with `expires_at` is destroyed then. */
  forWriting(subjects: readonly string[], expires_at?: Date): Promise<Map<string, SubjectKey>>;
  /** Cached keys of these subjects; undefined unless all of them are cached and current. */
  atHand?(subjects: readonly string[]): ReadonlyMap<string, SubjectKey> | undefined;
  /** Keys by key id; a key that was erased is absent. */
  forReading(key_ids: readonly string[]): Promise<Map<string, Buffer>>;
  /** Ids of the subject's keys; makes none. */
  keysOf(subject: string): Promise<string[]>;
  /** Destroys every key of the subject; returns their number. */
  erase(subject: string): Promise<number>;
  /** Destroys every expired key; returns their number. */
  expire(): Promise<number>;
  /**
   * Hashes that replace subjects in stored data: 128 bits of a keyed hash as base64url. Computing the hash of a known
   * subject needs the keys of this database.
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
   * `context` binds the text to its row: with another context it does not open. A key created for the text is destroyed
   * after `expires_at`.
   */
  seal(subject: string, text: string, context: string, expires_at?: Date): Promise<SealedText>;
  /** Null once the person was erased, or the key has expired. @throws Error when the key store does not answer */
  open(text: SealedText, context: string): Promise<string | null>;
  /** Opens many texts at once, in their order. */
  openAll(texts: readonly (SealedText & { context: string })[]): Promise<(string | null)[]>;
}
