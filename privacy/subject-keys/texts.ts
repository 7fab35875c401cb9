import { decrypt, encrypt } from '../../engines/records/cipher';
import type { PersonalTexts, SubjectKeys } from './port';

/** Encrypts and decrypts texts under their persons' keys, AES-256-GCM in base64. */
export function createPersonalTexts(keys: SubjectKeys): PersonalTexts {
  async function openAll(texts: Parameters<PersonalTexts['openAll']>[0]): Promise<(string | null)[]> {
    const found = await keys.forReading([...new Set(texts.map(({ key_id }) => key_id))]);
    return texts.map(({ key_id, sealed, context }) => {
      const key = found.get(key_id);
      return key === undefined ? null : decrypt(Buffer.from(sealed, 'base64'), key, context);
    });
  }
  return {
    openAll,
    async seal(subject, text, context, expires_at) {
      const { key, key_id } = (await keys.forWriting([subject], expires_at)).get(subject)!;
      return { key_id, sealed: encrypt(text, key, context).toString('base64') };
    },
    open: async (text, context) => (await openAll([{ ...text, context }]))[0]!,
  };
}
