import { decrypt, encrypt } from '../records/cipher';
import type { PersonalTexts, SubjectKeys } from './port';

/** Texts under their persons' keys, AES-256-GCM in base64. */
export function createPersonalTexts(keys: SubjectKeys): PersonalTexts {
  return {
    async seal(subject, text, context) {
      const { key, key_id } = (await keys.forWriting([subject])).get(subject)!;
      return { key_id, sealed: encrypt(text, key, context).toString('base64') };
    },
    async open({ key_id, sealed }, context) {
      const key = (await keys.forReading([key_id])).get(key_id);
      return key === undefined ? null : decrypt(Buffer.from(sealed, 'base64'), key, context);
    },
  };
}
