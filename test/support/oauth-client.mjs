// An OAuth client that knows nothing of Lumio: `oauth4webapi`, which is an ES module only. It is given what a front end
// and an administrator would tell it, goes through the flow, and prints what it got.
import { URLSearchParams } from 'node:url';
import * as oauth from 'oauth4webapi';

const { base_url, client_id, client_secret, auth, redirect_uri, scope, session } = JSON.parse(process.argv[2]);
const server = {
  issuer: base_url,
  authorization_endpoint: `${base_url}/v1/auth/authorize`,
  token_endpoint: `${base_url}/v1/auth/token`,
};
const client = { client_id };
const authentication =
  auth === 'basic'
    ? oauth.ClientSecretBasic(client_secret)
    : auth === 'post'
      ? oauth.ClientSecretPost(client_secret)
      : oauth.None();
const insecure = { [oauth.allowInsecureRequests]: true };

const code_verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const code_challenge = await oauth.calculatePKCECodeChallenge(code_verifier);

// The client's URL, as clients of OpenID providers make it.
const url = new URL(server.authorization_endpoint);
url.search = new URLSearchParams({
  ...{ client_id, redirect_uri, response_type: 'code', scope, state },
  ...{ code_challenge, code_challenge_method: 'S256' },
  ...{ nonce: oauth.generateRandomNonce(), prompt: 'consent', response_mode: 'query', login_hint: '' },
  ...{ access_type: 'offline', ui_locales: 'de en' },
}).toString();

// What our own front end does with it: it shows who asks for what, and once the user has agreed it passes it on.
const headers = { authorization: `Bearer ${session}`, 'content-type': 'application/json' };
const asking = await fetch(url, { headers });
if (asking.status !== 200) throw new Error(`${asking.status} ${await asking.text()}`);
const authorized = await fetch(server.authorization_endpoint, {
  method: 'POST',
  headers,
  body: JSON.stringify(Object.fromEntries(url.searchParams)),
});
const { data } = await authorized.json();
const callback = new URL(data.redirect_uri);
callback.searchParams.set('code', data.code);
callback.searchParams.set('state', data.state);

const parameters = oauth.validateAuthResponse(server, client, callback, state);
const answer = await oauth.authorizationCodeGrantRequest(
  ...[server, client, authentication, parameters, redirect_uri, code_verifier, insecure],
);
const first = await oauth.processAuthorizationCodeResponse(server, client, answer);
const traded = await oauth.refreshTokenGrantRequest(...[server, client, authentication, first.refresh_token, insecure]);
const second = await oauth.processRefreshTokenResponse(server, client, traded);
const own =
  auth === 'none'
    ? null
    : await oauth.processClientCredentialsResponse(
        ...[server, client, await oauth.clientCredentialsGrantRequest(server, client, authentication, {}, insecure)],
      );
const refused = await oauth.refreshTokenGrantRequest(server, client, authentication, 'made up', insecure);
const refusal = await oauth.processRefreshTokenResponse(server, client, refused).then(
  () => null,
  (error) => ({ error: error.error, status: error.status }),
);
process.stdout.write(JSON.stringify({ first, second, own, refusal }));
