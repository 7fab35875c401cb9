import { KILL_GRANT } from '../../access/authentication/tokens/oauth-grants';
import { reactor } from '../../app/reactor';
import { OAUTH_GRANT_EVENTS } from '../../domain/oauth-provider/oauth-grants';

/** Deletes the row of an ended grant, so that its tokens and sockets end when the command died after the event. */
export const oauthGrantEnds = reactor({
  name: 'oauth-grants',
  from: 'beginning',
  events: [OAUTH_GRANT_EVENTS],
  on: {
    'oauth_grant:ended': ({ grant_id }, { keep }) => keep(KILL_GRANT, [grant_id]),
  },
});
