import { createSecretKey, type KeyObject } from 'node:crypto';

export interface MasterKey {
  id: string;
  key: KeyObject;
}

/** The keys that wrap all others. The first one encrypts; all of them decrypt, so that keys can be rotated. */
export interface MasterKeys {
  current: MasterKey;
  by_id: ReadonlyMap<string, MasterKey>;
}

/**
 * Reads `id:base64 of 32 bytes`, several by commas (`LUMIO_SECRETS__KEYS`, design §9).
 * @throws Error in one line with the entry's position, never with a key
 */
export function parseMasterKeys(text: string): MasterKeys {
  const by_id = new Map<string, MasterKey>();
  const entries = text.split(',').map((entry) => entry.trim());
  entries.forEach((entry, index) => {
    const place = `secrets.keys: entry ${index + 1}`;
    const colon = entry.indexOf(':');
    const id = entry.slice(0, Math.max(colon, 0));
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) {
      throw new Error(`${place} must be id:base64, the id of letters, digits, - and _`);
    }
    const encoded = entry.slice(colon + 1);
    const key = Buffer.from(encoded, 'base64');
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded) || key.length !== 32) {
      throw new Error(`${place} (id ${id}) must hold base64 of exactly 32 bytes`);
    }
    if (by_id.has(id)) throw new Error(`${place} repeats the id ${id}`);
    by_id.set(id, { id, key: createSecretKey(key) });
  });
  return { current: [...by_id.values()][0]!, by_id };
}
