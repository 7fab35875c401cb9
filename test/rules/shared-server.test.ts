import { sharedServer, type SharedServer } from '../support/shared-server';

let server: SharedServer;
beforeAll(async () => void (server = await sharedServer()));

test('accounts of files that share a server know nothing of each other, and their members act as they may', async () => {
  const [ours, theirs] = [await server.account(), await server.account()];
  const viewer = await server.member(ours.account_id, 'viewer');
  const key = { label: 'Bot', permissions: ['events:read'] };
  const made = await ours.door.rest('POST', '/v1/api-keys', { body: key });
  expect(made.status).toBe(201);
  expect((await theirs.door.rest('GET', '/v1/api-keys')).json.data).toEqual([]);
  expect((await theirs.door.rest('DELETE', `/v1/api-keys/${made.json.data.id}`)).status).toBe(404);
  expect((await viewer.door.rest('POST', '/v1/api-keys', { body: key })).status).toBe(403);
  expect((await server.door('').rest('GET', '/v1/events')).status).toBe(401);
  const again = await server.session(viewer.user_id, ours.account_id);
  expect((await again.door.rest('GET', '/v1/tokens/me')).json.data.permissions).toContain('events:read');
});

test('what the operator refuses is told', async () => {
  const { account_id } = await server.account();
  await expect(server.operator.setFeatures(account_id, { unheard_of: true })).rejects.toThrow("operator's setFeatures");
  const { user_id } = await server.user();
  await expect(server.operator.openUserSession(user_id, account_id)).rejects.toThrow('is no member of account');
});
