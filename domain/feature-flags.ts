import { z } from 'zod';
import { event, events, instant, type EventOf } from '../kernel/event';
import type { Decider } from '../kernel/decider';
import { DomainError } from '../kernel/errors';
import { unreachable } from './unreachable';
import { PLATFORMS } from './vendors';

/** In the order the admin panel lists them. Source: spec extra-facts §26. */
export const FLAG_CATEGORIES = [
  'system',
  'platform',
  'widget',
  'feature',
  'integration',
  'bot_module',
  'automation',
  'copyright_provider',
  'event',
] as const;
export type FlagCategory = (typeof FLAG_CATEGORIES)[number];

export interface KnownFlag {
  key: string;
  category: FlagCategory;
}

const keys = (category: FlagCategory, ...names: string[]): KnownFlag[] =>
  names.map((name) => ({ key: `${category}:${name}`, category }));

/**
 * Every flag that code asks about; each is globally on until an operator turns it off. Source: spec flags.json,
 * extra-facts §26.
 */
export const KNOWN_FLAGS: readonly KnownFlag[] = [
  ...keys(
    'system',
    'account_creation',
    'public_stats',
    'ideas_hub',
    'ideas_hub_public',
    'copyright_public_directory',
    'copyright_public_quick_check',
  ),
  ...PLATFORMS.flatMap((platform) =>
    ['', ':login', ':channel', ':bot'].map((part): KnownFlag => ({
      key: `platform:${platform}${part}`,
      category: 'platform',
    })),
  ),
  ...keys('widget', 'chat_box', 'event_list', 'spotify_now_playing', 'obs_browser_source'),
  ...keys(
    'feature',
    'apikeys',
    'connections',
    'sounds',
    'extension_development',
    'extensions',
    'bot_module_extensions',
    'stream_history',
    'public_stats_page',
    'multichat',
    'events',
    'overlays',
    'widgets',
    'music',
    'automation',
    'bots',
    'multi_account',
    'obs_remote',
    'copyright_detection',
  ),
  ...keys('integration', 'shopify', 'obs_websocket'),
  ...keys('bot_module', 'link_protection'),
];

const byKey = new Map(KNOWN_FLAGS.map((flag) => [flag.key, flag]));

/**
 * Categories that a plan grants; a flag of theirs without a plan row or an override is off for an account. Source: spec
 * doc2 §2.8.
 */
export const PLAN_CATEGORIES: ReadonlySet<FlagCategory> = new Set(['feature', 'widget', 'integration', 'bot_module']);

/** Whether plans grant this flag. */
export function isPlanFlag(key: string): boolean {
  const flag = byKey.get(key);
  return flag !== undefined && PLAN_CATEGORIES.has(flag.category);
}

/** What resolution has to go on. Undefined: nothing was said on that layer. */
export interface FlagLayers {
  /** The operator's global switch. */
  global: boolean | undefined;
  /** The account's own setting, made by an operator. */
  override: boolean | undefined;
  /** True when an account is asking; without one only the global switch counts. */
  for_account: boolean;
}

/**
 * Global switch off is off for everyone; then the account's override; then the category's default. A flag that is not
 * known is off, so that a misspelt guard closes rather than opens. Source: spec extra-facts §26, "Resolution"; doc2
 * §2.8.
 */
export function flagEnabled(key: string, layers: FlagLayers): boolean {
  const flag = byKey.get(key);
  if (flag === undefined || layers.global === false) return false;
  if (!layers.for_account) return true;
  return layers.override ?? !PLAN_CATEGORIES.has(flag.category);
}

export const isKnownFlag = (key: string): boolean => byKey.has(key);

/** The operator's global switches, a stream a flag. Source: spec extra-facts §26. */
export const FEATURE_FLAG_EVENTS = events({
  'feature_flag:switched': event(
    { flag: z.string(), enabled: z.boolean(), switched_at: instant() },
    { audit: { target: ['feature_flag', 'flag'] } },
  ),
});
export type FeatureFlagEvent = EventOf<typeof FEATURE_FLAG_EVENTS>;

export type FeatureFlagCommand =
  | { type: 'feature_flag:switch'; flag: string; enabled: boolean; now: string }
  /** What was set before flags were events; says nothing where something was said since. */
  | { type: 'feature_flag:adopt'; flag: string; enabled: boolean; now: string };

export interface FeatureFlag {
  /** Null: nobody switched it, so it is on. */
  enabled: boolean | null;
}

export const featureFlagStream = (flag: string): string => `feature-flag-${flag}`;

export const featureFlag: Decider<FeatureFlag, FeatureFlagCommand, FeatureFlagEvent> = {
  initial: { enabled: null },
  decide(state, { type, flag, enabled, now }) {
    const switched = { type: 'feature_flag:switched', flag, enabled, switched_at: now } as const;
    switch (type) {
      case 'feature_flag:switch':
        if (!isKnownFlag(flag)) throw new DomainError('UNKNOWN_FLAG', { flag });
        return state.enabled === enabled ? [] : [switched];
      case 'feature_flag:adopt':
        return state.enabled === null ? [switched] : [];
      default:
        return unreachable(type);
    }
  },
  evolve: (_state, { enabled }) => ({ enabled }),
};
