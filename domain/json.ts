let pending: string[] | null = null;
const nonce = Math.random().toString(36).slice(2);
const PLACEHOLDER = new RegExp(`"@raw-${nonce}:(\\d+)@"`, 'g');

/**
 * JSON text that is sent as it was received, byte for byte: numbers beyond 2^53 and member order survive.
 * Only {@link stringify} can serialise it.
 */
export class RawJson {
  constructor(readonly text: string) {}

  toJSON(): string {
    if (pending === null) throw new Error('RawJson reached JSON.stringify outside domain/json stringify()');
    return `@raw-${nonce}:${pending.push(this.text) - 1}@`;
  }
}

/** Runs a synchronous serialiser and puts the text of every {@link RawJson} that it met into its output. */
export function withRawJson(serialise: () => string): string {
  const outer = pending;
  const texts: string[] = (pending = []);
  try {
    const json = serialise();
    return texts.length === 0 ? json : json.replace(PLACEHOLDER, (_match, index: string) => texts[Number(index)]!);
  } finally {
    pending = outer;
  }
}

/** `JSON.stringify` that understands {@link RawJson}. */
export function stringify(value: unknown): string {
  return withRawJson(() => JSON.stringify(value));
}
