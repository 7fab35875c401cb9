import { z } from 'zod';
import { feature, get, permission, query } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { enrich } from '../../services/chat/person-profiles';
import { profileOf, UnifiedProfile } from '../../views/chat/person-profiles';

/** Somebody of the account's chats, with their details on the platform. */
export const platformUserProfile = query({
  name: 'platformUserProfile',
  // Source: spec doc2 §4.3, extra facts §11.
  summary: "Somebody of the account's chats; the platform is asked when its answer is older than a day",
  rest: get('/v1/chat/users/{platform}/{platform_user_id}'),
  guard: [feature('feature:multichat'), permission('chat:userinfo')],
  input: z.object({ platform: z.enum(PLATFORMS), platform_user_id: z.string().min(1).max(100) }),
  output: UnifiedProfile,
  async run({ input, caller }, services) {
    const person = { ...input, account_id: caller.account_id };
    await enrich(services, person, false);
    return profileOf(services.db, person);
  },
});
