/** Seals small secrets (signing keys, OAuth tokens, data keys) for storage, under the installation's master keys. */
export interface SecretBox {
  /** Ids of the configured master keys; the first one writes. */
  readonly key_ids: readonly string[];
  /**
   * Text with the id of its master key. `context` is the purpose of the secret; only the same context opens the text.
   */
  seal(secret: string | Buffer, context: string): string;
  /** @throws SecretUnreadable */
  open(sealed: string, context: string): Buffer;
  /**
   * MAC of the text with the id of its master key, under a key derived from the first master key and from `context`.
   */
  sign(text: string, context: string): string;
  /** @throws SecretUnreadable when the MAC is not that of the text, or its master key is not configured */
  verify(mac: string, text: string, context: string): void;
  /** True when `sealed` is not under the first master key, and should be opened and sealed again. */
  isStale(sealed: string): boolean;
}

/** The sealed text is damaged, is for another context, or its master key is not configured. */
export class SecretUnreadable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SecretUnreadable';
  }
}
