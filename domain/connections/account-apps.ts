import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { APP_PLATFORMS, type AppPlatform } from '../operators/system-connections';

const of = { account_id: z.uuid(), platform: z.enum(APP_PLATFORMS) };
const OF_APP = { audit: { target: ['account_app', 'platform'] } } as const;

/**
 * The apps that an account has registered at vendors itself. Their secrets are sealed rows
 * (services/connections/oauth-apps.ts).
 */
export const ACCOUNT_APP_EVENTS = events({
  'account_app:set': event({ ...of, client_id: z.string(), set_at: instant() }, OF_APP),
  'account_app:removed': event({ ...of, removed_at: instant() }, OF_APP),
});
export type AccountAppEvent = EventOf<typeof ACCOUNT_APP_EVENTS>;

export type AccountAppCommand =
  | { type: 'account_app:set'; account_id: string; platform: AppPlatform; client_id: string; now: string }
  | { type: 'account_app:remove'; account_id: string; platform: AppPlatform; now: string };

/** Platform to the app's id. */
export type AccountApps = ReadonlyMap<AppPlatform, string>;

export const accountAppsStream = (account_id: string): string => `account-apps-${account_id}`;

export const accountApps: Decider<AccountApps, AccountAppCommand, AccountAppEvent> = {
  initial: new Map(),
  decide(state, command) {
    const { account_id, platform, now } = command;
    // The same id may come with another secret, which no event carries: that it was set is told each time.
    if (command.type === 'account_app:set')
      return [{ type: 'account_app:set', account_id, platform, client_id: command.client_id, set_at: now }];
    if (!state.has(platform)) throw new DomainError('APP_NOT_FOUND', { platform });
    return [{ type: 'account_app:removed', account_id, platform, removed_at: now }];
  },
  evolve(state, event) {
    const next = new Map(state);
    if (event.type === 'account_app:set') next.set(event.platform, event.client_id);
    else next.delete(event.platform);
    return next;
  },
};
