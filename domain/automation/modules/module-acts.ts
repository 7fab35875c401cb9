import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../common/vendors';
import { LINE_MODULES, type LineModule } from '../bot-modules';
import { subjectOf } from '../command-answers';

/** Acts of a module on a line, mildest first. */
export const MODULE_ACTIONS = ['warn', 'delete', 'timeout', 'ban'] as const;
export type ModuleAction = (typeof MODULE_ACTIONS)[number];

/** Acts that platforms do not carry out, besides those that need the id of a message. Source: spec doc2 §4.3. */
const IMPOSSIBLE: Readonly<Partial<Record<Platform, readonly ModuleAction[]>>> = {
  kick: ['timeout', 'ban'],
  trovo: ['delete', 'timeout'],
};

/** The strongest of acts; the first of equal ones. */
export const strongestOf = <Act extends { action: ModuleAction }>(acts: readonly Act[]): Act | undefined =>
  acts.reduce<Act | undefined>(
    (most, act) => (most === undefined || rank(act.action) > rank(most.action) ? act : most),
    undefined,
  );

const rank = (action: ModuleAction): number => MODULE_ACTIONS.indexOf(action);

/** The act itself, or the nearest milder one that the platform carries out. */
export function possibleAct(action: ModuleAction, platform: Platform, message_id: string | null): ModuleAction {
  const milder = MODULE_ACTIONS.slice(0, rank(action) + 1).reverse();
  const isPossible = (one: ModuleAction) =>
    IMPOSSIBLE[platform]?.includes(one) !== true && (one !== 'delete' || message_id !== null);
  return milder.find(isPossible) ?? 'warn';
}

/** Time in which warnings of a person count together, in milliseconds. */
export const WARNINGS_MS = 3_600_000;
const DELETES_FROM = 3;
const TIMES_OUT_FROM = 6;

/** The act of a person's warning, by its number in the last hour. */
export function actOfWarning(number: number): ModuleAction {
  if (number >= TIMES_OUT_FROM) return 'timeout';
  return number >= DELETES_FROM ? 'delete' : 'warn';
}

/** Name of the job. */
export const ACT_ON_LINE = 'act-on-chat-line';
/** Name of the job that publishes an act whose record could not be published at once. */
export const NOTE_MODULE_ACT = 'note-module-act';

/** A line on which a module acts, as the job carries it. */
export const ActedLine = {
  account_id: z.uuid(),
  module_name: z.enum(LINE_MODULES),
  platform: z.enum(PLATFORMS),
  /** Id of the record. */
  cause_id: z.uuid(),
  channel_id: z.string(),
  message_id: z.string().nullable(),
  live_chat_id: z.string().nullable(),
  action: z.enum(MODULE_ACTIONS),
  /** The act that the platform may not carry out. */
  wanted: z.enum(MODULE_ACTIONS),
  timeout_seconds: z.int(),
  /** Keyed hash of the person. */
  person: z.string(),
  /** Time of the line, in milliseconds since 1970. */
  at_ms: z.int(),
  platform_user_id: z.string().nullable(),
};
export type ActedLine = z.output<z.ZodObject<typeof ActedLine>>;
/** Members about the person, and whose they are. */
export const ACTED_PERSON = { platform_user_id: subjectOf };

/** Names of modules for people. */
export const MODULE_LABELS: Readonly<Record<LineModule, string>> = {
  link_protection: 'Link protection',
  spam_protection: 'Spam protection',
  word_filter: 'Word filter',
};

/** Reason of an act in the moderation log. */
export function reasonOf({
  module_name,
  action,
  wanted,
}: Pick<ActedLine, 'module_name' | 'action' | 'wanted'>): string {
  const label = MODULE_LABELS[module_name];
  return action === wanted ? label : `${label}: ${action}, because ${wanted} is not possible here`;
}
