import { FakeVendor } from './fake';

/** `www.googleapis.com`, of it the two that a login asks. */
export const fakeGoogle = (): FakeVendor =>
  new FakeVendor(({ method, path, query, token }, people) => {
    if (method === 'GET' && path === '/oauth2/v3/tokeninfo') {
      const person = people.get(query.get('access_token') ?? '');
      if (person === undefined) return { status: 400, body: { error_description: 'Invalid Value' } };
      const { client_id, id, email, scopes = ['openid'] } = person;
      const exp = String(Math.floor(Date.now() / 1000) + 3599);
      const about = { azp: client_id, aud: client_id, sub: id, scope: scopes.join(' '), exp, expires_in: '3599' };
      return {
        status: 200,
        body: { ...about, ...(email && { email, email_verified: 'true' }), access_type: 'online' },
      };
    }
    if (method === 'GET' && path === '/oauth2/v3/userinfo') {
      const person = people.get(token('Bearer'));
      if (person === undefined) return { status: 401, body: { error: 'invalid_request' } };
      const { id, name, email, avatar_url } = person;
      return {
        status: 200,
        body: { sub: id, name, given_name: name, picture: avatar_url, email, email_verified: true },
      };
    }
    return { status: 404, body: { error: { code: 404 } } };
  });
