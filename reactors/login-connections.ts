import { reactor } from '../access/reactor';
import { USER_EVENTS } from '../domain/users';

/** What a provider said of a login, and its tokens, go with it. */
export const loginGrants = reactor({
  name: 'login-connections',
  from: 'beginning',
  events: [USER_EVENTS],
  on: {
    'user:login_disconnected': ({ login_connection_id }, { keep }) =>
      keep('delete from login_grants where login_connection_id = $1', [login_connection_id]),
  },
});
