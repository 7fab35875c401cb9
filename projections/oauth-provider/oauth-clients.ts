import { rightsChanged } from '../../access/authentication/revocations';
import { OAUTH_CLIENT_EVENTS } from '../../domain/oauth-provider/oauth-clients';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer } from '../runtime/drive/handlers';

/** OAuth clients; a deleted client leaves no row, and its grants end. Source: spec extra-facts §27. */
export const oauthClients = eventProjection({
  name: 'oauth-clients',
  version: 1,
  tables: ['oauth_clients'],
  rights: true,
  events: [OAUTH_CLIENT_EVENTS],
  on: {
    'oauth_client:registered': all(sql`
      insert into oauth_clients (client_id, name, client_type, account_id, redirect_uris, scopes, grant_types, enabled,
                                 secret_hash, created_at, updated_at)
      select client_id, name, client_type, account_id, redirect_uris, scopes, grant_types, enabled,
             secret_hash, registered_at, registered_at
      from e on conflict (client_id) do nothing`),
    'oauth_client:changed': lastPer(
      ['client_id'],
      sql`
      update oauth_clients c set name = e.name, redirect_uris = e.redirect_uris, scopes = e.scopes,
        grant_types = e.grant_types, enabled = e.enabled, updated_at = e.changed_at
      from e where c.client_id = e.client_id`,
    ),
    'oauth_client:secret_rotated': lastPer(
      ['client_id'],
      sql`
      update oauth_clients c set secret_hash = e.secret_hash, updated_at = e.rotated_at from e
      where c.client_id = e.client_id`,
    ),
    'oauth_client:deleted': all(sql`delete from oauth_clients c using e where c.client_id = e.client_id`),
  },
  revokes: {
    'oauth_client:changed': ({ client_id }) => rightsChanged(client_id),
    'oauth_client:deleted': ({ client_id }) => ({ credential_id: client_id }),
  },
});
