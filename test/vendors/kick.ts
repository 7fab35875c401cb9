import { FakeVendor } from './fake';

/** `id.kick.com` and `api.kick.com`. */
export const fakeKick = (): FakeVendor =>
  new FakeVendor(({ method, path, token }, people) => {
    const person = people.get(token('Bearer'));
    if (method === 'POST' && path === '/oauth/token/introspect') {
      if (person === undefined) return { status: 200, body: { data: { active: false }, message: 'OK' } };
      const { client_id, scopes = ['user:read'] } = person;
      const exp = Math.floor(Date.now() / 1000) + 7200;
      const data = { active: true, client_id, token_type: 'user', scope: scopes.join(' '), exp };
      return { status: 200, body: { data, message: 'OK' } };
    }
    if (method === 'GET' && path === '/public/v1/users') {
      if (person === undefined) return { status: 401, body: { data: {}, message: 'Unauthorized' } };
      const { id, name, email = '', avatar_url = '' } = person;
      return {
        status: 200,
        body: { data: [{ user_id: Number(id), name, email, profile_picture: avatar_url }], message: 'OK' },
      };
    }
    return { status: 404, body: { message: 'Not Found' } };
  });
