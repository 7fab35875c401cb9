import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

/**
 * That an operator erased a person from the chats. The person is named by keyed hashes alone. Source: spec doc2 §4.3
 * `eraseChatSubjectData`.
 */
export const CHAT_ERASURE_EVENTS = events({
  'chat:pii_erased': event(
    {
      erasure_id: z.uuid(),
      subjects: z.array(z.string()),
      deleted_message_count: z.int().min(0),
      affected_account_ids: z.array(z.uuid()),
      erased_at: instant(),
    },
    { audit: { action: 'chat_pii_erasure', log: 'installation', target: ['chat_erasure', 'erasure_id'] } },
  ),
});
export type ChatErasureEvent = EventOf<typeof CHAT_ERASURE_EVENTS>;

export type ChatErasureCommand = { type: 'chat:note_erasure'; now: string } & Omit<
  ChatErasureEvent,
  'type' | 'erased_at'
>;

export const chatErasureStream = (erasure_id: string): string => `chat-erasure-${erasure_id}`;

/** Note of an erasure; the state is whether it was noted. */
export const chatErasure: Decider<boolean, ChatErasureCommand, ChatErasureEvent> = {
  initial: false,
  decide: (noted, { type: _type, now: erased_at, ...erasure }) =>
    noted ? [] : [{ type: 'chat:pii_erased', ...erasure, erased_at }],
  evolve: () => true,
};
