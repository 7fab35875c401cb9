/** People of the examples. */
export const CHANNEL = {
  broadcaster_user_id: '1337',
  broadcaster_user_login: 'cool_streamer',
  broadcaster_user_name: 'Cool_Streamer',
} as const;
export const VIEWER = { user_id: '4242', user_login: 'ada_l', user_name: 'Ada_L' } as const;
export const MODERATOR = {
  moderator_user_id: '1339',
  moderator_user_login: 'mod_user',
  moderator_user_name: 'Mod_User',
} as const;
