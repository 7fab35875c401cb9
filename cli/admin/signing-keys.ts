import { actFor } from '../../app/write-path/act';
import { replaceSigningKeys, rotateSigningKey, type RotatedKey } from '../../access/authentication/tokens/signing-keys';
import { signingKeys, SIGNING_KEYS_STREAM } from '../../domain/credentials/signing-keys';
import { asOperator, type AdminServices } from './shared/operator';

/** `credential_id` of the commands of `lumio keys`. */
const OPERATOR = 'lumio-keys';
const instant = (text: string): string => new Date(text).toISOString();

/** Rotates the signing key, with an entry in the audit log. */
export async function rotateSigning(services: AdminServices, longest_token_ms: number): Promise<RotatedKey> {
  const rotated = await rotateSigningKey(services, longest_token_ms);
  const { kid: key_id, signs_from, others_verify_until } = rotated;
  await actFor(asOperator(OPERATOR), services)(signingKeys, SIGNING_KEYS_STREAM, {
    type: 'signing_key:rotate',
    ...{ key_id, signs_from: instant(signs_from), others_verify_until: instant(others_verify_until) },
  });
  return rotated;
}

/** Replaces all signing keys, with an entry in the audit log. */
export async function replaceSigning(services: AdminServices): Promise<{ kid: string }> {
  const replaced = await replaceSigningKeys(services);
  await actFor(asOperator(OPERATOR), services)(signingKeys, SIGNING_KEYS_STREAM, {
    type: 'signing_key:replace',
    key_id: replaced.kid,
  });
  return replaced;
}
