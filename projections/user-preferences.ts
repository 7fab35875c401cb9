import { USER_PREFERENCE_EVENTS } from '../domain/user-preferences';
import { sql } from '../kernel/sql';
import { handled, last } from './runtime/handlers';

/** How people have the dashboard. */
export const userPreferences = handled({
  name: 'user-preferences',
  version: 1,
  tables: ['user_preferences'],
  events: [USER_PREFERENCE_EVENTS],
  on: {
    'user_preference:set': last(
      ['user_id'],
      sql`
      insert into user_preferences (user_id, streamer_mode, extension_dev_mode, set_at)
      select user_id, streamer_mode, extension_dev_mode, set_at from e
      on conflict (user_id) do update set streamer_mode = excluded.streamer_mode,
        extension_dev_mode = excluded.extension_dev_mode, set_at = excluded.set_at`,
    ),
  },
});
