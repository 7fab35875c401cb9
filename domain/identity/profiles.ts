import { z } from 'zod';
import { event, events, instant, subject, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';

/** Name and address of a person. */
const MEMBERS = ['display_name', 'email'] as const;
const person = subject('user', 'user_id');

/**
 * That a profile was changed, for the audit log: what is shown of a person is a row (services/identity/profiles.ts),
 * and here it is personal. Both members are as they were afterwards.
 */
export const PROFILE_EVENTS = events({
  'profile:changed': event(
    {
      user_id: z.uuid(),
      changed: z.array(z.enum(MEMBERS)),
      display_name: z.string().nullable(),
      email: z.string().nullable(),
      changed_at: instant(),
    },
    {
      personal: { display_name: person, email: person },
      audit: { target: ['user', 'user_id'] },
    },
  ),
});
export type ProfileChanged = EventOf<typeof PROFILE_EVENTS>;

export const profileStream = (user_id: string): string => `profile-${user_id}`;

interface Named {
  display_name: string | null;
  email: string | null;
}

/** Nothing of a person is remembered: what was so before comes with the command. */
export const profile: Decider<
  null,
  { type: 'profile:change'; user_id: string; before: Named; after: Named; now: string },
  ProfileChanged
> = {
  initial: null,
  stateless: true,
  decide(_state, { user_id, before, after, now }) {
    const changed = MEMBERS.filter((member) => before[member] !== after[member]);
    if (changed.length === 0) return [];
    return [{ type: 'profile:changed', user_id, changed, ...after, changed_at: now }];
  },
  evolve: (state) => state,
};
