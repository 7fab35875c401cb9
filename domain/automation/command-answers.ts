import { z } from 'zod';
import { PLATFORMS } from '../common/vendors';

/** Age from which a line of a chat is not answered, in milliseconds. */
export const LINE_MS = 30_000;

/**
 * A line that uses a command, as the jobs of bots carry it. Members about the person are sealed under the person's key.
 */
export const UsedCommand = {
  account_id: z.uuid(),
  command_id: z.uuid(),
  platform: z.enum(PLATFORMS),
  /** Id of the record. */
  cause_id: z.uuid(),
  channel_id: z.string(),
  reply_to: z.string().nullable(),
  live_chat_id: z.string().nullable(),
  /** Keyed hash of the person. */
  person: z.string(),
  /** Time of the line, in milliseconds since 1970. */
  at_ms: z.int(),
  platform_user_id: z.string().nullable(),
  user: z.string().nullable(),
  args: z.string().nullable(),
};
export type UsedCommand = z.output<z.ZodObject<typeof UsedCommand>>;

/** Names of the jobs. */
export const ANSWER_COMMAND = 'answer-bot-command';
export const LOOK_UP_FOLLOWER = 'look-up-bot-follower';

/** The person of a payload. */
export const subjectOf = ({ platform, platform_user_id }: Record<string, unknown>): string | null =>
  typeof platform_user_id === 'string' ? `${String(platform)}:${platform_user_id}` : null;
/** Members about the person, and whose they are. */
export const PERSONAL = { platform_user_id: subjectOf, user: subjectOf, args: subjectOf };

/** RFC 3339: after it, a line is not answered. */
export const lineExpiry = (at_ms: number): string => new Date(at_ms + LINE_MS).toISOString();
