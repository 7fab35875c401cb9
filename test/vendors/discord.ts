import { FakeVendor } from './fake';

/** `discord.com/api/v10`. */
export const fakeDiscord = (): FakeVendor =>
  new FakeVendor(({ method, path, token }, people) => {
    const person = people.get(token('Bearer'));
    if (person === undefined) return { status: 401, body: { message: '401: Unauthorized', code: 0 } };
    const { client_id, id, name, email, scopes = ['identify'] } = person;
    const user = { id, username: name.toLowerCase(), global_name: name, avatar: 'a1b2c3', discriminator: '0' };
    if (method === 'GET' && path === '/api/v10/oauth2/@me') {
      const application = { id: client_id, name: 'App', icon: null, description: '', bot_public: false };
      const expires = new Date(Date.now() + 604_800_000).toISOString();
      return { status: 200, body: { application, scopes, expires, user } };
    }
    if (method === 'GET' && path === '/api/v10/users/@me') return { status: 200, body: { ...user, email } };
    return { status: 404, body: { message: '404: Not Found', code: 0 } };
  });
