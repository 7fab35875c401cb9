import { uuid } from '../support/identity';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { ApiClient, eventually } from '../support/vendor-cloud';

describe('on a server', () => {
  let server: SharedServer;
  let root: MadeAccount;
  let operator: ApiClient;
  const clientOf = (token: string) => new ApiClient(server.base_url, token);
  beforeAll(async () => {
    server = await sharedServer();
    root = await server.account();
    operator = clientOf(root.access_token);
    await server.operator.setAdminRole(root.user_id, 'super-admin', true);
  });

  test('is found by its name or its owner, a page at a time, and shown with its roles', async () => {
    const ada = await server.account();
    for (const search of [ada.name, ada.display_name.toUpperCase()]) {
      const { body } = await operator.get(`/v1/admin/accounts?search=${encodeURIComponent(search)}`);
      expect(body.data).toContainEqual({
        id: ada.account_id,
        name: ada.name,
        description: null,
        owner_id: ada.user_id,
        owner_name: ada.display_name,
        plan: 'free',
        member_count: 1,
        created_at: expect.any(String),
      });
    }
    expect((await operator.get('/v1/admin/accounts?limit=1&page=2')).body._meta).toMatchObject({ page: 2, limit: 1 });
    const { data } = await operator.gql('query ($id: UUID!) { adminAccount(id: $id) { ownerId roles { slug } } }', {
      id: ada.account_id,
    });
    expect(data.adminAccount).toEqual({
      ownerId: ada.user_id,
      roles: ['owner', 'administrator', 'moderator', 'viewer'].map((slug) => ({ slug })),
    });
  });

  test('is edited and put on one plan by many at once: each is answered, and the plan counts them all', async () => {
    const accounts = await Promise.all([1, 2, 3, 4].map(() => server.account()));
    const slug = `crowd-${root.account_id.slice(-8)}`;
    const offer = {
      ...{ slug, name: 'Crowd', is_public: false, sort_order: 9, price_monthly: 0, price_yearly: 0, max_overlays: 1 },
      ...{ max_storage_bytes: 1, max_upload_size_bytes: 1, max_integrations: 1, chat_retention_days: 1 },
    };
    const { id } = (await operator.send('POST', '/v1/admin/plans', offer)).body.data;
    const path = `/v1/admin/plans/${id}`;
    const wave = async (...changes: object[]) => {
      const edits = accounts.flatMap(({ account_id }) =>
        changes.map((change, n) =>
          operator.send('PATCH', `/v1/admin/accounts/${account_id}`, change, {
            'idempotency-key': `${account_id} ${n} ${JSON.stringify(change)}`,
          }),
        ),
      );
      return (await Promise.all(edits)).map(({ status }) => status);
    };
    const all = (status: number) => accounts.flatMap(() => [status, status, status]);
    expect(await wave({ plan: slug }, { name: 'One' }, { description: 'Two', plan: slug })).toEqual(all(200));
    expect((await operator.get(path)).body.data).toMatchObject({ accounts_using: accounts.length });
    expect((await operator.send('DELETE', path, undefined)).status).toBe(409);
    expect(await wave({ plan: 'free' }, { description: null }, { name: 'Three', plan: 'free' })).toEqual(all(200));
    expect((await operator.send('DELETE', path, undefined)).status).toBe(204);
  });

  test('is edited and put on a plan, and its own audit log says by whom', async () => {
    const ada = await server.account();
    const path = `/v1/admin/accounts/${ada.account_id}`;
    const { body } = await operator.send('PATCH', path, { name: ' Ada live ', plan: 'pro' });
    expect(body.data).toMatchObject({ name: 'Ada live', plan: 'pro' });
    const again = await operator.send('PATCH', path, { name: 'Ada live', description: 'Hi', plan: 'pro' });
    expect(again.body.data).toMatchObject({ name: 'Ada live', description: 'Hi', plan: 'pro' });
    expect(await operator.send('PATCH', path, { plan: 'gold' })).toMatchObject({
      status: 404,
      body: { message: 'Plan not found' },
    });
    expect((await operator.send('PATCH', path, {})).body.message).toBe('At least one field must be given');
    const logged = await eventually(async () => {
      const { data } = (await clientOf(ada.access_token).get('/v1/account/audit-log?action=account:details_changed'))
        .body;
      return data[0];
    }, 'the change in the audit log');
    expect(logged).toMatchObject({ actor: { id: root.user_id }, after: { name: 'Ada live' } });
  });

  test('gets members, roles and goodbyes from an operator, but no second owner', async () => {
    const ada = await server.account();
    const { user_id } = await server.user();
    const path = `/v1/admin/accounts/${ada.account_id}`;
    const { roles } = (await operator.get(path)).body.data;
    const [owner, , moderator, viewer] = roles.map((role: { id: string }) => role.id);
    const add = (role_id: string) => operator.send('POST', `${path}/members`, { user_id, role_id });
    expect(await add(owner)).toMatchObject({ status: 403, body: { message: 'The Owner role cannot be assigned' } });
    expect(await add(viewer)).toMatchObject({ status: 201, body: { data: { user_id, role: { slug: 'viewer' } } } });
    expect((await add(viewer)).status).toBe(409);
    const member = `${path}/members/${user_id}`;
    const changed = await operator.send('PATCH', member, { role_id: moderator });
    expect(changed.body.data).toMatchObject({ role: { slug: 'moderator' } });
    expect((await operator.get(`${path}/members`)).body._meta.total).toBe(2);
    expect((await operator.send('DELETE', member, undefined)).status).toBe(204);
    expect((await operator.send('DELETE', member, undefined)).status).toBe(404);
    const { message } = (await operator.send('DELETE', `${path}/members/${ada.user_id}`, undefined)).body;
    expect(message).toBe('The owner cannot be removed');
    const nobody = await operator.send('POST', `${path}/members`, { user_id: uuid(404), role_id: viewer });
    expect(nobody.body.message).toBe('User not found');
  });

  test('has features and limits of its own at once, of which a wrong list sets none', async () => {
    const ada = await server.account();
    const api = clientOf(ada.access_token);
    const path = `/v1/admin/accounts/${ada.account_id}/overrides`;
    const before = (await operator.get(path)).body.data;
    const sounds = { key: 'feature:sounds', enabled: false };
    const wrong = { features: [sounds], limits: [{ name: 'max_moons', value: 1 }] };
    expect((await operator.send('PATCH', path, wrong)).body.message).toBe('Unknown limit: max_moons');
    expect((await operator.get(path)).body.data).toEqual(before);
    const set = await operator.send('PATCH', path, {
      features: [sounds],
      limits: [{ name: 'max_accounts', value: 3 }],
    });
    expect(set.body.data.features).toContainEqual(sounds);
    expect(set.body.data.limits).toEqual([{ name: 'max_accounts', value: 3 }]);
    const { data } = (await api.get('/v1/users/me')).body;
    expect(data.max_accounts).toBe(3);
    expect(data.feature_statuses).toContainEqual(expect.objectContaining(sounds));
    const cleared = await operator.gql(
      `mutation ($id: UUID!) { adminUpdateAccountOverrides(id: $id, input: {limits: [{name: "max_accounts"}]}) {
         limits { name value } } }`,
      { id: ada.account_id },
    );
    expect(cleared.data?.adminUpdateAccountOverrides ?? cleared).toEqual({ limits: [] });
  });

  test('is dissolved, and then is nobody’s', async () => {
    const ada = await server.account();
    const path = `/v1/admin/accounts/${ada.account_id}`;
    expect((await operator.send('DELETE', path, undefined)).status).toBe(204);
    expect((await operator.get(path)).body).toMatchObject({ error: 'NOT_FOUND', message: 'Account not found' });
    for (const again of [path, `/v1/admin/accounts/${uuid(404)}`])
      expect((await operator.send('DELETE', again, undefined)).status).toBe(404);
    const { data } = (await clientOf(ada.access_token).get('/v1/users/me')).body;
    expect(data).toMatchObject({ accounts: [], active_account_id: null, owned_account_count: 0 });
  });

  test.each([
    ['GET', '', 'accounts:read'],
    ['PATCH', '', 'accounts:edit'],
    ['DELETE', '', 'accounts:delete'],
    ['GET', '/overrides', 'accounts:overrides-read'],
    ['PATCH', '/overrides', 'accounts:overrides-edit'],
    ['POST', '/members', 'accounts:edit'],
  ])('an administrator of the account may not %s it%s here', async (method, part, permission) => {
    const path = `/v1/admin/accounts/${root.account_id}${part}`;
    const ada = await server.member(root.account_id, 'administrator');
    const body = method === 'GET' || method === 'DELETE' ? undefined : {};
    expect(await clientOf(ada.access_token).send(method, path, body)).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: `Missing permission: ${permission}` },
    });
  });
});
