import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

const page = {
  kind: z.enum(['overlay', 'widget']),
  page_id: z.uuid(),
  paused: z.boolean(),
  muted: z.boolean(),
};

/** Changes of what is stored about the alerts of an account's pages, in one stream of the account. */
export const ALERT_CONTROL_EVENTS = events({
  'alerts:controlled': event(
    {
      account_id: z.uuid(),
      action: z.enum(['pause', 'resume', 'mute', 'unmute']),
      pages: z.array(z.object(page)).describe('The changed ones'),
      channels: z.array(z.string()).describe('Of the pages, in their order'),
      changed_at: instant(),
    },
    { audit: { target: ['account', 'account_id'], omit: ['channels'] } },
  ),
});
export type AlertControlEvent = EventOf<typeof ALERT_CONTROL_EVENTS>;
export type StoredAction = AlertControlEvent['action'];

/** A page with alerts. */
export interface AlertPage {
  kind: 'overlay' | 'widget';
  page_id: string;
  channel: string;
}
export interface AlertControlCommand {
  type: 'alerts:control';
  account_id: string;
  action: StoredAction;
  pages: readonly AlertPage[];
  now: string;
}

export interface AlertState {
  paused: boolean;
  muted: boolean;
}
const PLAYING: AlertState = { paused: false, muted: false };
const CHANGES: Readonly<Record<StoredAction, Partial<AlertState>>> = {
  pause: { paused: true },
  resume: { paused: false },
  mute: { muted: true },
  unmute: { muted: false },
};

export const alertControlsStream = (account_id: string): string => `alert-controls-${account_id}`;

/** States by the ids of pages; those whose alerts play with their sounds are left out. */
export const alertControls: Decider<Readonly<Record<string, AlertState>>, AlertControlCommand, AlertControlEvent> = {
  initial: {},
  decide(state, { account_id, action, pages, now }) {
    const changed = pages.flatMap(({ kind, page_id, channel }) => {
      const before = state[page_id] ?? PLAYING;
      const { paused, muted } = { ...before, ...CHANGES[action] };
      const is_same = paused === before.paused && muted === before.muted;
      return is_same ? [] : [{ channel, page: { kind, page_id, paused, muted } }];
    });
    if (changed.length === 0) return [];
    const channels = changed.map(({ channel }) => channel);
    const controlled = { account_id, action, pages: changed.map((one) => one.page), channels };
    return [{ type: 'alerts:controlled', ...controlled, changed_at: now }];
  },
  evolve(state, { pages }) {
    const next = new Map(Object.entries(state));
    for (const { page_id, paused, muted } of pages) {
      if (paused || muted) next.set(page_id, { paused, muted });
      else next.delete(page_id);
    }
    return Object.fromEntries(next);
  },
};

/** Messages to the sources of the changed pages of a kind. */
export const controlMessages = (
  kind: AlertPage['kind'],
  { action, pages, channels }: AlertControlEvent,
): { channel: string; event_type: string; data: string }[] =>
  pages.flatMap(({ kind: of, paused, muted }, index) => {
    const data = JSON.stringify({ action, paused, muted, event: null });
    return of === kind ? [{ channel: channels[index]!, event_type: 'overlay:alerts', data }] : [];
  });
