/** Seals small secrets (signing keys, OAuth tokens, data keys) for storage, under the installation's master keys. */
export interface SecretBox {
  /** Ids of the configured master keys; the first one writes. */
  readonly key_ids: readonly string[];
  /**
   * Text that names the key it was sealed under. `context` says what the secret is for; only the same context opens it.
   */
  seal(secret: string | Buffer, context: string): string;
  /** @throws SecretUnreadable */
  open(sealed: string, context: string): Buffer;
  /**
   * A MAC of the text, under a key derived from the master key that writes and from `context`; it names the master key.
   */
  sign(text: string, context: string): string;
  /** @throws SecretUnreadable when the MAC is not that of the text, or its master key is not configured */
  verify(mac: string, text: string, context: string): void;
  /** True when `sealed` is under a key that no longer writes, and should be opened and sealed again. */
  isStale(sealed: string): boolean;
}

/** The sealed text is damaged, is for another context, or its master key is not configured. */
export class SecretUnreadable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SecretUnreadable';
  }
}
