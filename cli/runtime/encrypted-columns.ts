import { webhookSecretContext } from '../../services/automation/automations/webhooks';
import { SHOP_SECRET } from '../../services/connections/connection-lookup';
import { IDENTITY_KEY } from '../../services/identity/identities';
import { loginGrantContext } from '../../services/oauth/login-grants';
import { appSecretContext } from '../../services/connections/oauth-apps';
import { oauthStateContext } from '../../services/oauth/oauth-states';
import { seTokenContext } from '../../services/connections/se-tokens';
import { SIGNING_KEY } from '../../access/authentication/tokens/signing-keys';
import type { SealedPlace } from '../../privacy/secrets/rotation';
import { HASH_KEY } from '../../privacy/subject-keys/hashes';
import { contextOf } from '../../privacy/subject-keys/known-keys';
import { DEMO_PLAN } from '../../demo/data';

/** All columns that are sealed under the master keys, for `lumio keys rotate` and `lumio keys status`. */
export const ENCRYPTED_COLUMNS: readonly SealedPlace[] = [
  {
    what: 'subject keys',
    table: 'subject_keys',
    column: 'wrapped_key',
    key: 'key_id',
    key_type: 'uuid',
    context: contextOf,
  },
  {
    what: 'subject hash keys',
    table: 'subject_hash_key',
    column: 'wrapped_key',
    key: 'only_row',
    key_type: 'boolean',
    context: () => HASH_KEY,
  },
  {
    what: 'token signing keys',
    table: 'signing_keys',
    column: 'private_sealed',
    key: 'kid',
    key_type: 'text',
    context: () => SIGNING_KEY,
  },
  {
    what: 'shop secrets',
    table: 'connection_secrets',
    column: 'sealed',
    key: 'connection_id',
    key_type: 'uuid',
    context: () => SHOP_SECRET,
  },
  {
    what: 'app secrets',
    table: 'app_secrets',
    column: 'sealed',
    key: 'id',
    key_type: 'text',
    context: appSecretContext,
  },
  {
    what: 'logins that were begun',
    table: 'oauth_states',
    column: 'sealed',
    key: 'state_hash',
    key_type: 'text',
    context: oauthStateContext,
  },
  {
    what: 'tip tokens',
    table: 'se_token_secrets',
    column: 'sealed',
    key: 'token_id',
    key_type: 'uuid',
    context: seTokenContext,
  },
  {
    what: 'login tokens',
    table: 'login_grants',
    column: 'sealed',
    key: 'login_connection_id',
    key_type: 'uuid',
    context: loginGrantContext,
  },
  {
    what: 'webhook secrets',
    table: 'automation_webhook_secrets',
    column: 'sealed',
    key: "(automation_id || ' ' || secret_hash)",
    key_type: 'text',
    context: (key) => webhookSecretContext(key.slice(0, key.indexOf(' '))),
  },
  {
    what: 'login identity keys',
    table: 'installation',
    column: 'value',
    key: 'name',
    key_type: 'text',
    where: `name = '${IDENTITY_KEY}'`,
    context: () => IDENTITY_KEY,
  },
  {
    what: 'demo plans',
    table: 'installation',
    column: 'value',
    key: 'name',
    key_type: 'text',
    where: "name = 'demo'",
    context: () => DEMO_PLAN,
  },
];

/** Columns that the first start fills: each start verifies the master keys against them. */
export const EARLY_PLACES = ENCRYPTED_COLUMNS.filter(({ table }) =>
  ['subject_hash_key', 'signing_keys'].includes(table),
);
