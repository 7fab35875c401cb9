import { ErrorType, isCommandError, NotLeaderError } from '@kurrent/kurrentdb-client';
import { Status } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/status_pb';
import { InvalidEvent } from '../checks';
import { RevisionConflict } from '../port';
import { NotLeaderNodeErrorDetails } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/errors_pb';

/** The login lacks a right that tails or appends need. */
export class MissingRight extends Error {}

export interface NodeAddress {
  address: string;
  port: number;
}

const LASTING: readonly string[] = [
  ErrorType.ACCESS_DENIED,
  ErrorType.UNSUPPORTED,
  ErrorType.INVALID_ARGUMENT,
  ErrorType.STREAM_DELETED,
  ErrorType.STREAM_TOMBSTONED,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
  ErrorType.APPEND_RECORD_SIZE_EXCEEDED,
  ErrorType.TRANSACTION_MAX_SIZE_EXCEEDED,
  ErrorType.WRONG_EXPECTED_VERSION,
];
/** gRPC: INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED. */
const LASTING_CODES: readonly unknown[] = [3, 7, 12, 16];

const typeOf = (error: unknown): string | undefined =>
  error instanceof Error && isCommandError(error) ? error.type : undefined;
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

/** Whether another try may succeed after an error of the client: every error except a refusal by the server. */
export function isPassingAtKurrentdb(error: unknown): boolean {
  // The client's own failures (no node found, a broken stream) are plain errors; programming errors are not retried.
  if (error instanceof MissingRight) return false;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return false;
  if (error instanceof InvalidEvent || error instanceof RevisionConflict) return false;
  const type = typeOf(error);
  if (isMessageTooLarge(error)) return false;
  return !(type !== undefined && LASTING.includes(type)) && !LASTING_CODES.includes(codeOf(error));
}

/** gRPC's RESOURCE_EXHAUSTED for a message; a busy server returns the same code. Source: KurrentDB 26.1. */
const isMessageTooLarge = (error: unknown): boolean =>
  codeOf(error) === 8 && /message (?:exceeds the maximum|larger than max)/i.test((error as Error).message);

export const isRefusedLogin = (error: unknown): boolean =>
  typeOf(error) === ErrorType.ACCESS_DENIED || codeOf(error) === 7 || codeOf(error) === 16;

/** Whether the server refuses the content, for its size or its form. */
export const isRefusedContent = (error: unknown): boolean =>
  codeOf(error) === 3 || isMessageTooLarge(error) || /size-exceeded/.test(typeOf(error) ?? '');

/** An error's first line, without the stack of its transport. */
export const reason = (error: unknown): string => String((error as Error).message ?? error).split('\n')[0]!;

/**
 * The leader in the error of a node that refused a leader's operation; undefined for every other error. The client
 * recognises the error of the first streams protocol; that of the second, used by appends, is an unknown error for it.
 */
export function leaderOf(error: unknown): NodeAddress | undefined {
  if (error instanceof NotLeaderError) return error.leader;
  if (!(error instanceof Error) || !isCommandError(error)) return undefined;
  const metadata = error._raw?.metadata;
  if (typeof metadata?.get !== 'function') return undefined;
  const [packed] = metadata.get('grpc-status-details-bin');
  if (!(packed instanceof Uint8Array)) return undefined;
  const details = Status.deserializeBinary(packed).getDetails();
  if (!details?.getTypeUrl().endsWith('.NotLeaderNodeErrorDetails')) return undefined;
  const leader = NotLeaderNodeErrorDetails.deserializeBinary(details.getValue_asU8()).getCurrentLeader();
  return leader && { address: leader.getHost(), port: leader.getPort() };
}
