import type { JobTools } from '../../../app/job';
import type { RunCause, RunStart } from '../../../domain/automation/automation-runs';
import type { TemplateEncoding } from '../../../domain/automation/templates/expand';
import type { Queryable } from '../../../engines/postgres/port';

/** Replaces the places of a template by values, encoded for their place: by default without control characters. */
export type Expand = (template: string, encode?: TemplateEncoding) => string;

/** A step at work. */
export interface StepWork {
  account_id: string;
  automation_id: string | null;
  run_id: string;
  step_id: string;
  node_id: string;
  depth: number;
  persons: readonly string[];
  permissions: readonly string[] | null;
  event_id: string | null;
  cause: RunCause;
  config: Readonly<Record<string, unknown>>;
  expand: Expand;
  /** Milliseconds since 1970 after which no call is made. */
  expires_ms: number;
  /** Milliseconds after a cause, or a wait, in which calls are made. */
  window_ms: number;
}

export type StepTools = Pick<JobTools, 'db' | 'act' | 'chats' | 'records' | 'live' | 'texts' | 'webhooks' | 'hashes'>;

export interface Failure {
  status: 'failed' | 'unknown';
  error: string;
}

/** Name of an output, or the decision in the transaction that ends the step. */
type Output = string | ((tx: Queryable) => Promise<string | Failure>);

export type Outcome = { status: 'succeeded'; output: Output; starts?: RunStart } | Failure;

/** Carries out the nodes of a type. */
export interface Executor {
  /** Whether its calls reach others: a call of unknown outcome is never repeated. */
  calls?: boolean;
  /** Config with the values of the run, as the step shows it. */
  input(work: StepWork): Record<string, unknown>;
  /** @throws NotSent where a later try may succeed */
  run(work: StepWork, input: Record<string, unknown>, tools: StepTools): Promise<Outcome>;
}

export const done: Outcome = { status: 'succeeded', output: 'done' };
export const failed = (error: string): Failure => ({ status: 'failed', error });
export const decided = (holds: boolean): Outcome => ({ status: 'succeeded', output: holds ? 'true' : 'false' });

/** Expands all texts of a JSON value. */
export function expanded(value: unknown, expand: Expand, encode?: TemplateEncoding): unknown {
  if (typeof value === 'string') return expand(value, encode);
  if (Array.isArray(value)) return value.map((one) => expanded(one, expand, encode));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, expanded(one, expand, encode)]));
}
