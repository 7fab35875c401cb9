import { FakeVendor } from './fake';

/** `id.twitch.tv` and `api.twitch.tv`. */
export const fakeTwitch = (): FakeVendor =>
  new FakeVendor(({ method, path, headers, token }, people) => {
    if (method === 'GET' && path === '/oauth2/validate') {
      const person = people.get(token('OAuth')) ?? people.get(token('Bearer'));
      if (person === undefined) return { status: 401, body: { status: 401, message: 'invalid access token' } };
      const { client_id, id: user_id, name, scopes = [] } = person;
      return { status: 200, body: { client_id, login: name.toLowerCase(), scopes, user_id, expires_in: 14_000 } };
    }
    if (method === 'GET' && path === '/helix/users') {
      const person = people.get(token('Bearer'));
      if (person === undefined || headers['client-id'] !== person.client_id)
        return {
          status: 401,
          body: { error: 'Unauthorized', status: 401, message: 'Client ID and OAuth token do not match' },
        };
      const { id, name, email, avatar_url = '' } = person;
      const user = { id, login: name.toLowerCase(), display_name: name, type: '', broadcaster_type: '' };
      return { status: 200, body: { data: [{ ...user, description: '', profile_image_url: avatar_url, email }] } };
    }
    return { status: 404, body: { error: 'Not Found', status: 404, message: '' } };
  });
