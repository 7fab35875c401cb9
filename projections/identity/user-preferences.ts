import { USER_PREFERENCE_EVENTS } from '../../domain/identity/user-preferences';
import { USER_EVENTS } from '../../domain/identity/users';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Dashboard preferences of people. */
export const userPreferences = eventProjection({
  name: 'user-preferences',
  version: 2,
  tables: ['user_preferences'],
  events: [USER_PREFERENCE_EVENTS, pick(USER_EVENTS, 'user:deleted')],
  on: {
    'user:deleted': all(sql`delete from user_preferences d using e where d.user_id = e.user_id`),
    'user_preference:set': lastPer(
      ['user_id'],
      sql`
      insert into user_preferences (user_id, streamer_mode, extension_dev_mode, set_at)
      select user_id, streamer_mode, extension_dev_mode, set_at from e
      on conflict (user_id) do update set streamer_mode = excluded.streamer_mode,
        extension_dev_mode = excluded.extension_dev_mode, set_at = excluded.set_at`,
    ),
  },
});
