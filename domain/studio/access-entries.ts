import { z } from 'zod';
import { event, instant } from '../../kernel/event';

/** Roles of access entries, which only narrow what a member's own role allows. */
export const ACCESS_ROLES = ['viewer', 'editor', 'none'] as const;
export type AccessRole = (typeof ACCESS_ROLES)[number];
export const isAccessRole = (role: string): role is AccessRole => (ACCESS_ROLES as readonly string[]).includes(role);

const BY_USER = { audit: { by: ['user_id'] } };

/** Events of the entries of a widget or an overlay, which `ids` names. */
export const granted = <const Ids extends z.ZodRawShape>(ids: Ids) =>
  event(
    {
      ...ids,
      entry_id: z.uuid(),
      user_id: z.uuid(),
      role: z.enum(ACCESS_ROLES),
      granted_by: z.uuid().nullable(),
      granted_at: instant(),
    },
    BY_USER,
  );
export const revoked = <const Ids extends z.ZodRawShape>(ids: Ids) =>
  event({ ...ids, user_id: z.uuid(), revoked_at: instant() }, BY_USER);

/** Entries by user. */
export type AccessEntries = Readonly<Record<string, { entry_id: string; role: AccessRole }>>;
