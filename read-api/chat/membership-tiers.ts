import { z } from 'zod';
import { get, permission, query, whole } from '../../app/operation';
import { MembershipTier, membershipTiers } from '../../views/chat/membership-tiers';

/** Tiers of the memberships of the account's YouTube channel. */
export const youtubeMembershipTiers = query({
  name: 'youtubeMembershipTiers',
  // Source: spec doc2 §2.10, §4.2 and §4.3.
  summary: "Tiers of memberships of the account's YouTube channel, as its members' events name them",
  rest: get('/v1/youtube/memberships/tiers'),
  pages: whole(),
  guard: [permission('chat:read')],
  input: z.object({}),
  output: MembershipTier,
  run: ({ caller }, { db }) => membershipTiers(db, caller.account_id),
});
