import type { EventStore } from '../engines/event-store/port';
import type { RequestContext, Written } from '../access/authentication/caller';
import { metadata, typesOf } from './write-path/metadata';
import type { ReadModels, Services } from './services';

/** Read models that events of these types change. */
export interface Readers {
  /** Read models behind answers. */
  shown(types: readonly string[]): string[];
  /** Read models of callers' rights, where the events may revoke some. */
  rights(types: readonly string[]): string[];
}

/**
 * Additional wait of a command for the read models of callers' rights, over all of its acts, so that revoked rights
 * have ended when it answers.
 */
const RIGHTS_WAIT_MS = 10_000;

/**
 * Waits until the read models have applied the write; returns false on timeout. After the first timeout, later waits of
 * the request share its deadline, so that a command that ends many sessions waits once.
 */
export async function waitForReadModels(
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

/** Appends in the caller's name and waits until answers include the write. */
export const createCommit =
  (events: Pick<EventStore, 'append'>, awaitShown: Services['awaitShown']): Services['commit'] =>
  async (request, writes, onAppended) => {
    const result = await events.append(writes, metadata(request.caller, request.context));
    onAppended?.();
    await awaitShown(request.context, { position: result.position, types: typesOf(writes) });
    return result;
  };

/** Waits until answers include the write; on a timeout the response has a header for it. */
export const createAwaitReadModels =
  (read_models: ReadModels, readers: Readers): Services['awaitShown'] =>
  async (context, written) => {
    if (await waitForReadModels(read_models, readers, context, written)) return;
    (context.response_headers ??= {})['x-lumio-read-model'] = 'behind';
    (context.not_shown ??= []).push(written);
  };
