import { z } from 'zod';
import { command, permission, post, rateLimited } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { enrich, takeRefresh } from '../../services/chat/person-profiles';
import { profileOf, UnifiedProfile } from '../../views/chat/person-profiles';

/** Asks the platform for a profile, however old its last answer is. */
export const refreshPlatformUserProfile = command({
  name: 'refreshPlatformUserProfile',
  // Source: spec doc2 §4.2 and §4.3, doc1 §7.1 and §8.
  summary: 'Asks the platform for the profile of somebody, at most once in ten minutes',
  rest: post('/v1/chat/users/{platform}/{platform_user_id}/refresh'),
  guard: [permission('chat:refresh_user')],
  input: z.object({ platform: z.enum(PLATFORMS), platform_user_id: z.string().min(1).max(100) }),
  output: UnifiedProfile,
  errors: {
    // Source: spec doc1 §7.1 rule 5.
    REFRESH_COOLDOWN: rateLimited('This profile was refreshed a short while ago', {
      shows: ['retry_after_seconds'],
      rest_code: 'REFRESH_COOLDOWN',
      graphql_code: 'REFRESH_COOLDOWN',
    }),
  },
  async run({ input, caller, refuse }, services) {
    const person = { ...input, account_id: caller.account_id };
    const retry_after_seconds = await takeRefresh(services, person);
    if (retry_after_seconds > 0) throw refuse('REFRESH_COOLDOWN', { retry_after_seconds });
    await enrich(services, person, true);
    return profileOf(services.db, person);
  },
});
