import type { JobDeclaration } from '../../kernel/job';
import type { JsonObject } from '../../lib/json/json';
import { createSealing } from '../event-store/decorators/sealing';
import type { StoredEvent } from '../event-store/port';
import type { SubjectKeys } from '../../privacy/subject-keys/port';

/**
 * Encrypts and decrypts the personal members of jobs' payloads as those of events: under the person's key, bound to the
 * job's key.
 */
export function createPayloadSealing(declared: readonly JobDeclaration[], keys: SubjectKeys) {
  const sealing = createSealing(new Map(declared.map((one) => [one.name, one])), keys);
  return {
    async seal(name: string, key: string, payload: JsonObject): Promise<JsonObject> {
      const events = [{ id: key, type: name, data: payload }];
      const [[write]] = await sealing.seal([{ stream: name, expected: 'any', events }], {});
      return write!.events[0]!.data;
    },
    /** Null where the subject's key was erased. @throws Error when the key store does not answer */
    async open(name: string, key: string, stored: JsonObject): Promise<JsonObject> {
      const [opened] = await sealing.open([{ id: key, type: name, data: stored } as StoredEvent]);
      return opened!.data;
    },
  };
}
