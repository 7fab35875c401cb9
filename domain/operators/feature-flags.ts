import { v5 } from 'uuid';
import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { unreachable } from '../common/unreachable';
import { PROVIDERS } from '../connections/providers';

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
  /** Derives from the key, so that it is equal in every installation. */
  id: string;
  key: string;
  category: FlagCategory;
  /** Name for people. */
  label: string;
}

/** Namespace of the ids that derive from keys; any fixed UUID does. */
const NAMESPACE = '5a0c6d3e-9f7b-4b0e-8c59-2f1f0f6f3b11';
const SPELT: Readonly<Record<string, string>> = {
  apikeys: 'API keys',
  obs: 'OBS',
  websocket: 'WebSocket',
  spotify: 'Spotify',
  shopify: 'Shopify',
  youtube: 'YouTube',
  twitch: 'Twitch',
  kick: 'Kick',
  trovo: 'Trovo',
  discord: 'Discord',
};

function flag(category: FlagCategory, name: string): KnownFlag {
  const key = `${category}:${name}`;
  const words = name.split(/[_:]/).map((word) => SPELT[word] ?? word);
  const [first, ...rest] = words;
  const label = [first![0]!.toUpperCase() + first!.slice(1), ...rest].join(' ');
  return { id: v5(key, NAMESPACE), key, category, label };
}
const keys = (category: FlagCategory, ...names: string[]): KnownFlag[] => names.map((name) => flag(category, name));

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
  ...PROVIDERS.flatMap(({ slug, kinds }) => keys('platform', slug, ...kinds.map((kind) => `${slug}:${kind}`))),
  ...keys('widget', 'chat_box', 'event_list', 'spotify_now_playing', 'obs_browser_source'),
  ...keys('widget', 'alert_box', 'text', 'image', 'timer'),
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
  ...keys('bot_module', 'link_protection', 'spam_protection', 'word_filter', 'timed_messages'),
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

/** Layers of a flag's resolution. Undefined: the layer has no value. */
export interface FlagLayers {
  /** The operator's global switch. */
  global?: boolean | undefined;
  /** Value of the account's plan. */
  plan?: boolean | undefined;
  /** The account's own setting, made by an operator. */
  override?: boolean | undefined;
  /** True when an account is asking; without one only the global switch counts. */
  for_account: boolean;
}

/** Why a flag is off: the first layer that says so. Source: spec doc2 §2.2. */
export const FLAG_REASONS = ['global_off', 'plan_locked', 'account_override', 'user_override'] as const;
export type FlagReason = (typeof FLAG_REASONS)[number];

/** A flag as one account, or one user, has it. */
export interface FlagStatus {
  key: string;
  enabled: boolean;
  /** Null when it is on. */
  reason: FlagReason | null;
}

/**
 * The first layer that is off decides: the global switch, the plan, the account's own setting. An account's own "on"
 * lifts the plan's lock, never the global switch. Null: on. Source: spec extra-facts §26, "Resolution"; doc2 §2.8.
 */
export function flagReason(key: string, layers: FlagLayers): FlagReason | null {
  if (layers.global === false) return 'global_off';
  if (!layers.for_account) return null;
  if (isPlanFlag(key) && layers.plan !== true && layers.override !== true) return 'plan_locked';
  return layers.override === false ? 'account_override' : null;
}

/** A flag that is not known is off, so that a misspelt guard closes rather than opens. */
export const flagEnabled = (key: string, layers: FlagLayers): boolean =>
  isKnownFlag(key) && flagReason(key, layers) === null;

/** The flag whose switch an operator may give each user an exception from. */
export const ACCOUNT_CREATION = 'system:account_creation';

/** Whether this user may make accounts: always where an operator allows it. Source: spec doc2 §2.2. */
export function accountCreationStatus(global: boolean | undefined, override: 'default' | 'allow' | 'deny'): FlagStatus {
  const off = global === false ? 'global_off' : override === 'deny' ? 'user_override' : null;
  const reason = override === 'allow' ? null : off;
  return { key: ACCOUNT_CREATION, enabled: reason === null, reason };
}

/** Flags in an account's lists: all but those of the whole service. Source: spec doc2 §2.2. */
export const ACCOUNT_FLAGS: readonly KnownFlag[] = KNOWN_FLAGS.filter(({ category }) => category !== 'system');

/** Flags in a plan's list. */
export const PLAN_FLAGS: readonly KnownFlag[] = KNOWN_FLAGS.filter(({ category }) => PLAN_CATEGORIES.has(category));

/** Name of a flag for people. */
export const labelOf = (key: string): string => byKey.get(key)?.label ?? key;

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
  /** Value set before flags were events; ignored where an event exists. */
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
