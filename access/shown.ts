import type { EventStore } from '../engines/event-store/port';
import type { RequestContext, Written } from './caller';
import { metadata, typesOf } from './metadata';
import type { ReadModels, Services } from './services';

/** The read models that events of these types change. */
export interface Readers {
  /** Those that answers show. */
  shown(types: readonly string[]): string[];
  /** Those that say what callers may do, where the events may take something from them. */
  rights(types: readonly string[]): string[];
}

/**
 * How much longer a command waits for read models of what callers may do, in all of its acts: what it ends is over when
 * it answers.
 */
const RIGHTS_WAIT_MS = 10_000;

/**
 * Waits, within the bound, until the read models have what was written; false when one was behind. From the first that
 * was, all waits of a request end together: a command that ends many things waits once, not for each of them.
 */
export async function shown(
  read_models: ReadModels,
  readers: Readers,
  context: Pick<RequestContext, 'behind_until'>,
  written: Written,
): Promise<boolean> {
  if ('topic' in written) return read_models.applied(written.topic, new Map(written.ends), written.projections);
  const { position, types } = written;
  const { behind_until: until } = context;
  if (await read_models.passed(position, readers.shown(types), { until })) return true;
  context.behind_until ??= performance.now() + RIGHTS_WAIT_MS;
  await read_models.passed(position, readers.rights(types), {
    within_ms: RIGHTS_WAIT_MS,
    until: context.behind_until,
  });
  return false;
}

/** Appends in the caller's name, says so, and waits until answers show it. */
export const committing =
  (events: Pick<EventStore, 'append'>, awaitShown: Services['awaitShown']): Services['commit'] =>
  async (request, writes, onAppended) => {
    const result = await events.append(writes, metadata(request.caller, request.context));
    onAppended?.();
    await awaitShown(request.context, { position: result.position, types: typesOf(writes) });
    return result;
  };

/** Waits until answers show what was written; where one is behind, the answer says so. */
export const awaiting =
  (read_models: ReadModels, readers: Readers): Services['awaitShown'] =>
  async (context, written) => {
    if (await shown(read_models, readers, context, written)) return;
    (context.response_headers ??= {})['x-lumio-read-model'] = 'behind';
    (context.not_shown ??= []).push(written);
  };
