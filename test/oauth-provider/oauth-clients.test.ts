import { isRedirectUri, oauthClient, type OauthClientEvent } from '../../domain/oauth-provider/oauth-clients';
import { oauthGrant, type OauthGrantEvent } from '../../domain/oauth-provider/oauth-grants';
import { oauthClients } from '../../projections/oauth-provider/oauth-clients';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';

const now = '2026-01-02T03:04:05.000Z';
const [client_id, account_id] = [uuid(1), uuid(2)];
const edit = {
  name: 'Stream deck',
  redirect_uris: ['https://deck.example/cb'],
  scopes: ['events:read', 'chat:read'],
  grant_types: ['authorization_code' as const, 'refresh_token' as const],
  enabled: true,
};
const secret_hash = 'a'.repeat(64);
const facts = { client_id, client_type: 'confidential' as const, account_id: null, ...edit, secret_hash };
const registered: OauthClientEvent = { type: 'oauth_client:registered', ...facts, registered_at: now };
const deleted: OauthClientEvent = { type: 'oauth_client:deleted', client_id, deleted_at: now };

describe('an OAuth client', () => {
  const given = decider(oauthClient);
  const register = { type: 'oauth_client:register', ...facts, now } as const;

  test('is registered once, with what it says twice said once', () => {
    const twice = {
      scopes: ['chat:read', 'events:read', 'chat:read'],
      redirect_uris: [...edit.redirect_uris, ...edit.redirect_uris],
    };
    given([])
      .when({ ...register, ...twice })
      .then(registered);
    given([registered]).when(register).thenFails('CLIENT_EXISTS');
    given([registered, deleted]).when(register).thenFails('CLIENT_EXISTS');
  });
  test('says in the log of the account that it acts on what it may there, and when it ends', () => {
    const on_account: OauthClientEvent = { ...registered, account_id };
    const { name, scopes, enabled } = edit;
    const granted = { client_id, account_id, name, scopes, enabled };
    given([])
      .when({ ...register, account_id })
      .then(on_account, { type: 'oauth_client:account_granted', ...granted, granted_at: now });
    given([on_account])
      .when({ type: 'oauth_client:change', scopes: ['chat:read'], now })
      .then(
        { type: 'oauth_client:changed', client_id, ...edit, scopes: ['chat:read'], changed_at: now },
        { type: 'oauth_client:account_changed', ...granted, scopes: ['chat:read'], changed_at: now },
      );
    const moved = { ...edit, redirect_uris: ['https://deck.example/elsewhere'] };
    given([on_account])
      .when({ type: 'oauth_client:change', redirect_uris: moved.redirect_uris, now })
      .then({ type: 'oauth_client:changed', client_id, ...moved, changed_at: now });
    given([on_account])
      .when({ type: 'oauth_client:delete', now })
      .then(deleted, { type: 'oauth_client:account_released', client_id, account_id, released_at: now });
  });
  test.each([
    ['a redirect with a fragment', { redirect_uris: ['https://deck.example/cb#x'] }, 'REDIRECT_URI_REFUSED'],
    ['a code without a redirect', { redirect_uris: [] }, 'REDIRECT_URI_MISSING'],
    ['a scope that is none', { scopes: ['events:fly'] }, 'UNKNOWN_PERMISSION'],
    ['a wildcard', { scopes: ['events:*'] }, 'UNKNOWN_PERMISSION'],
    ['a scope of users, not of an account', { scopes: ['ideas:read'] }, 'UNKNOWN_PERMISSION'],
    ['a scope of administrators', { scopes: ['users:read'] }, 'UNKNOWN_PERMISSION'],
    ['a scope that makes lasting keys', { scopes: ['apikeys:create'] }, 'SCOPE_NOT_FOR_CLIENTS'],
    ['a scope that makes lasting invites', { scopes: ['members:create'] }, 'SCOPE_NOT_FOR_CLIENTS'],
    ['its own credentials without an account', { grant_types: ['client_credentials' as const] }, 'NOT_ITS_OWN_MASTER'],
  ])('has no %s', (_what, wrong, reason) => {
    given([])
      .when({ ...register, ...wrong })
      .thenFails(reason);
    given([registered])
      .when({ type: 'oauth_client:change', ...wrong, now })
      .thenFails(reason);
  });
  test('that is public acts for no account, and has no secret to rotate', () => {
    const open = { client_type: 'public' as const, secret_hash: null };
    given([])
      .when({ ...register, ...open, account_id, grant_types: ['client_credentials'] })
      .thenFails('NOT_ITS_OWN_MASTER');
    given([{ ...registered, ...open }])
      .when({ type: 'oauth_client:rotate_secret', secret_hash, now })
      .thenFails('NO_SECRET');
  });
  test('is changed as a whole, nothing when it is the same, and not once it is gone', () => {
    given([registered])
      .when({ type: 'oauth_client:change', enabled: false, now })
      .then({ type: 'oauth_client:changed', client_id, ...edit, enabled: false, changed_at: now });
    given([registered]).when({ type: 'oauth_client:change', name: edit.name, now }).thenNothing();
    given([registered, deleted])
      .when({ type: 'oauth_client:change', enabled: false, now })
      .thenFails('CLIENT_NOT_FOUND');
    given([registered, deleted]).when({ type: 'oauth_client:delete', now }).thenFails('CLIENT_NOT_FOUND');
    given([registered]).when({ type: 'oauth_client:delete', now }).then(deleted);
  });
});

test.each([
  ['https://deck.example/cb', true],
  ['https://deck.example:8443/cb?kept=1', true],
  ['http://127.0.0.1:7777/cb', true],
  ['http://localhost/cb', true],
  ['http://[::1]:1/cb', true],
  ['com.example.deck:/cb', true],
  ['http://deck.example/cb', false],
  ['http://localhost.evil.example/cb', false],
  ['http://127.0.0.1@evil.example/cb', false],
  ['https://deck.example/cb#fragment', false],
  ['https://user:pass@deck.example/cb', false],
  ['https://deck.example\\@evil.example/cb', false],
  ['https://*.deck.example/cb', false],
  ['https://DECK.example/cb', false],
  ['https://d%65ck.example/cb', false],
  ['https:deck.example/cb', false],
  ['https://deck.example/c b', false],
  ['javascript:alert(1)', false],
  ['data:text/html,x', false],
  ['//deck.example/cb', false],
  ['/cb', false],
  ['', false],
])('a client may be sent to %s: %s', (uri, may) => expect(isRedirectUri(uri)).toBe(may));

test('what a user agreed to begins once, and never after its end', () => {
  const given = decider(oauthGrant);
  const ids = { grant_id: uuid(3), client_id, user_id: uuid(4), account_id };
  const terms = { session_id: uuid(5), scopes: ['events:read'], ends_at: now };
  const begun: OauthGrantEvent = { type: 'oauth_grant:begun', ...ids, ...terms, begun_at: now };
  const ended: OauthGrantEvent = { type: 'oauth_grant:ended', ...ids, reason: 'code_reused', ended_at: now };
  const begin = { type: 'oauth_grant:begin', ...ids, ...terms, now } as const;
  const end = { type: 'oauth_grant:end', ...ids, reason: 'code_reused', now } as const;
  given([]).when(begin).then(begun);
  given([begun]).when(begin).thenFails('GRANT_OVER');
  given([begun]).when(end).then(ended);
  given([]).when(end).then(ended);
  given([ended]).when(begin).thenFails('GRANT_OVER');
  given([begun, ended]).when(end).thenNothing();
});

describe('the read model of OAuth clients', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase()));
  afterAll(() => t.drop());

  test('shows the same rows when a page comes twice, and ends what a deleted client held', async () => {
    const other = { ...registered, client_id: uuid(6), account_id };
    const page: OauthClientEvent[] = [
      registered,
      other,
      { type: 'oauth_client:changed', client_id, ...edit, name: 'Deck', enabled: false, changed_at: now },
      { type: 'oauth_client:secret_rotated', client_id, secret_hash: 'b'.repeat(64), rotated_at: now },
      { type: 'oauth_client:deleted', client_id: uuid(6), deleted_at: now },
    ];
    await feed(t.db, oauthClients, page, 2);
    expect(await t.db.query('select client_id, name, scopes, enabled, secret_hash from oauth_clients')).toEqual([
      { client_id, name: 'Deck', scopes: edit.scopes, enabled: false, secret_hash: 'b'.repeat(64) },
    ]);
    // The changed client's grants are judged again; those of the deleted one end.
    const told = await t.db.query('select distinct credential_id from revocations order by credential_id');
    expect(told).toEqual([{ credential_id: uuid(6) }, { credential_id: `changed:${client_id}` }]);
  });
});
