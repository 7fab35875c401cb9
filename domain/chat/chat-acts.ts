import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { PLATFORMS, type Platform } from '../common/vendors';

/** Acts of a moderator that Lumio carries out on a platform. Source: spec doc2 §2.10. */
export const CHAT_ACTIONS = ['BAN', 'TIMEOUT', 'DELETE'] as const;
export type ChatAction = (typeof CHAT_ACTIONS)[number];
/** Acts that the audit log notes. */
export const NOTED_ACTIONS = [...CHAT_ACTIONS, 'UNBAN', 'TREATMENT'] as const;
export type NotedAction = (typeof NOTED_ACTIONS)[number];
/** Acts on a person or message of the chat. */
export type ModerationAction = ChatAction | 'UNBAN';

/** The person whom the act is about, by the platform's id. */
const person = ({ platform, platform_user_id }: Record<string, unknown>): string | null =>
  typeof platform_user_id === 'string' ? `${String(platform)}:${platform_user_id}` : null;

/** That a member acted on a chat, for the audit log; the record of the act itself is on `chat-events`. */
export const CHAT_ACT_EVENTS = events({
  'chat:moderated': event(
    {
      account_id: z.uuid(),
      act_id: z.uuid(),
      platform: z.enum(PLATFORMS),
      action: z.enum(NOTED_ACTIONS),
      platform_user_id: z.string().nullable(),
      message_id: z.string().nullable(),
      duration_secs: z.int().nullable(),
      reason: z.string().nullable(),
      moderated_at: instant(),
    },
    {
      // Version 2 has more actions.
      version: 2,
      upcast: [(data) => data],
      personal: { platform_user_id: person, reason: person },
      audit: { target: ['chat_act', 'act_id'] },
    },
  ),
});
export type ChatActEvent = EventOf<typeof CHAT_ACT_EVENTS>;

export interface ChatActCommand {
  type: 'chat:moderate';
  account_id: string;
  act_id: string;
  platform: Platform;
  action: NotedAction;
  platform_user_id: string | null;
  message_id: string | null;
  duration_secs: number | null;
  reason: string | null;
  now: string;
}

export const chatActStream = (act_id: string): string => `chat-act-${act_id}`;

/** Notes of a moderator's act; the state is whether it was noted. */
export const chatAct: Decider<boolean, ChatActCommand, ChatActEvent> = {
  initial: false,
  decide(noted, { type: _type, now: moderated_at, ...act }) {
    return noted ? [] : [{ type: 'chat:moderated', ...act, moderated_at }];
  },
  evolve: () => true,
};
