import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';

const switches = {
  streamer_mode: z.boolean().describe('Hides what a stream should not show'),
  extension_dev_mode: z.boolean().describe('Loads the latest draft of extensions that the user develops'),
};

/** How a person has the dashboard. Source: spec doc2 §2.3. */
export const USER_PREFERENCE_EVENTS = events({
  'user_preference:set': event(
    { user_id: z.uuid(), ...switches, set_at: instant() },
    { audit: { target: ['user', 'user_id'], by: [] } },
  ),
});
export type UserPreferenceEvent = EventOf<typeof USER_PREFERENCE_EVENTS>;

export interface UserPreferences {
  streamer_mode: boolean;
  extension_dev_mode: boolean;
}

export const userPreferenceStream = (user_id: string): string => `user-preference-${user_id}`;

export const userPreferences: Decider<
  UserPreferences,
  { type: 'user_preference:set'; user_id: string; changes: Partial<UserPreferences>; now: string },
  UserPreferenceEvent
> = {
  initial: { streamer_mode: false, extension_dev_mode: false },
  decide(state, { user_id, changes, now }) {
    const { streamer_mode = state.streamer_mode, extension_dev_mode = state.extension_dev_mode } = changes;
    if (streamer_mode === state.streamer_mode && extension_dev_mode === state.extension_dev_mode) return [];
    return [{ type: 'user_preference:set', user_id, streamer_mode, extension_dev_mode, set_at: now }];
  },
  evolve: (_state, { streamer_mode, extension_dev_mode }) => ({ streamer_mode, extension_dev_mode }),
};
