import { FakeVendor } from './fake';

/** `open-api.trovo.live`. */
export const fakeTrovo = (): FakeVendor =>
  new FakeVendor(({ method, path, headers, token }, people) => {
    const person = people.get(token('OAuth'));
    if (person === undefined || headers['client-id'] === undefined)
      return { status: 401, body: { status: 11704, error: 'ErrAccessTokenInvalid', message: 'invalid access token' } };
    const { client_id, id, name, email = '', avatar_url = '', scopes = ['user_details_self'] } = person;
    if (method === 'GET' && path === '/openplatform/validate') {
      const expire_ts = String(Math.floor(Date.now() / 1000) + 14_400);
      return { status: 200, body: { uid: id, client_id, scopes, expire_ts } };
    }
    if (method === 'GET' && path === '/openplatform/getuserinfo') {
      const user = { userId: id, userName: name.toLowerCase(), nickName: name, email, profilePic: avatar_url };
      return { status: 200, body: { ...user, info: '', channelId: id } };
    }
    return { status: 404, body: { status: 1000, error: '', message: '' } };
  });
