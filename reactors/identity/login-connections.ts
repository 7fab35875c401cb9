import { reactor } from '../../app/reactor';
import { KEEP_FORMER_LOGIN } from '../../services/identity/former-logins';
import { FORGET_ORIGINS, madeWithLogin, revokeMade } from '../../services/identity/credential-origins';
import { DELETE_SESSIONS, sessionsOfLogin } from '../../services/identity/session-revocation';
import { session, sessionStream } from '../../domain/identity/sessions';
import { PLATFORMS } from '../../domain/common/vendors';
import { USER_EVENTS } from '../../domain/identity/users';

/** Deletes the provider's data and tokens of a removed login, and ends its sessions and what was made in them. */
export const loginGrants = reactor({
  name: 'login-connections',
  from: 'beginning',
  events: [USER_EVENTS],
  on: {
    async 'user:login_disconnected'(login, { act, db, keep }) {
      if (PLATFORMS.some((platform) => platform === login.provider))
        keep(KEEP_FORMER_LOGIN, [login.login_connection_id, login.provider]);
      keep('delete from login_grants where login_connection_id = $1', [login.login_connection_id]);
      // Sessions, keys and tokens that the command did not end, because it died or a login was concurrent.
      const ids = await sessionsOfLogin(db, login);
      const made = await madeWithLogin(db, login);
      keep(DELETE_SESSIONS, [ids]);
      for (const one of made) await revokeMade(act, one);
      keep(FORGET_ORIGINS, [made.map(({ credential_id }) => credential_id)]);
      for (const id of ids) await act(session, sessionStream(id), { type: 'session:end', reason: 'revoked' });
    },
  },
});
