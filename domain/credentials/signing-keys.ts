import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

/**
 * Changes of the keys that sign tokens, for the audit log. The keys are rows
 * (access/authentication/tokens/signing-keys.ts), and never in an event.
 */
export const SIGNING_KEY_EVENTS = events({
  'signing_key:rotated': event({
    key_id: z.uuid().describe('The new key, `kid` of its tokens'),
    signs_from: instant(),
    others_verify_until: instant(),
    rotated_at: instant(),
  }),
  'signing_key:replaced': event({ key_id: z.uuid().describe('The only key from now on'), replaced_at: instant() }),
});
export type SigningKeyEvent = EventOf<typeof SIGNING_KEY_EVENTS>;

export type SigningKeyCommand =
  | { type: 'signing_key:rotate'; key_id: string; signs_from: string; others_verify_until: string; now: string }
  | { type: 'signing_key:replace'; key_id: string; now: string };

export const SIGNING_KEYS_STREAM = 'signing-keys';

export const signingKeys: Decider<null, SigningKeyCommand, SigningKeyEvent> = {
  initial: null,
  stateless: true,
  decide(_state, command) {
    if (command.type === 'signing_key:replace')
      return [{ type: 'signing_key:replaced', key_id: command.key_id, replaced_at: command.now }];
    const { type: _type, now, ...rotated } = command;
    return [{ type: 'signing_key:rotated', ...rotated, rotated_at: now }];
  },
  evolve: (state) => state,
};
