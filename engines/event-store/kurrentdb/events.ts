import type { AllStreamResolvedEvent, ReadPosition, ResolvedEvent } from '@kurrent/kurrentdb-client';
import type { JsonObject } from '../../../lib/json/json';
import { type EventFilter, type Position, RECORDED_AT, type StoredEvent } from '../port';

/** Event types of this adapter's own bookkeeping, which callers never get. */
export const INSTALLATION_TYPE = 'lumio.installation';
export const CLAIM_TYPE = 'lumio.event-id';

/** Value of the server for a missing position: all bits set. */
const NO_POSITION = 2n ** 64n - 1n;

/** `commit/prepare`, both as decimal numbers. */
export function formatPosition(at: { commit: bigint; prepare: bigint }): Position {
  return `${at.commit}/${at.prepare}`;
}

export function parsePosition(position: Position): { commit: bigint; prepare: bigint } {
  const [commit, prepare] = position.split('/');
  return { commit: BigInt(commit!), prepare: BigInt(prepare!) };
}

export const fromPosition = (after: Position | null): ReadPosition => (after === null ? 'start' : parsePosition(after));

export function comparePositions(a: Position, b: Position): number {
  const [x, y] = [parsePosition(a), parsePosition(b)];
  const difference = x.commit === y.commit ? x.prepare - y.prepare : x.commit - y.commit;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/**
 * The server's filter by event type, as a regular expression: the given types, or all except the server's and this
 * adapter's own.
 */
export function typesPattern({ types }: EventFilter): string {
  if (!types) return '^(?![$]|lumio\\.)';
  const escaped = types.map((type) => type.replace(/[\\^$.*+?()[\]{}|#\s]/g, '\\$&').replace(/:\\\*$/, ':.*'));
  return `^(?:${escaped.join('|')})$`;
}

/** Converts an event; undefined for one that Lumio cannot have written: not a JSON object, or a link without event. */
export function toEvent(resolved: ResolvedEvent | AllStreamResolvedEvent): StoredEvent | undefined {
  const { event } = resolved;
  if (!event?.isJson || typeof event.data !== 'object' || event.data === null) return undefined;
  const { position } = event;
  if (!position || position.commit === NO_POSITION)
    throw new Error(`the event store gave no position for event ${event.revision} of ${event.streamId}`);
  const { [RECORDED_AT]: recorded_at = event.created.toISOString(), ...metadata } = toMetadata(event.metadata);
  return {
    id: event.id,
    stream: event.streamId,
    revision: Number(event.revision),
    position: formatPosition(position),
    type: event.type,
    data: event.data as JsonObject,
    metadata,
    recorded_at,
  };
}

/** The appended flat strings, without the server's own properties (`$…`). */
function toMetadata(stored: unknown): Record<string, string> {
  const metadata: Record<string, string> = {};
  if (typeof stored !== 'object' || stored === null || stored instanceof Uint8Array) return metadata;
  for (const [name, value] of Object.entries(stored)) {
    if (!name.startsWith('$') && typeof value === 'string') metadata[name] = value;
  }
  return metadata;
}
