import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import { ApiError } from '../../../kernel/errors';
import { onAnswerEnd } from './answer-end';
import { createAnswerRoom, type ReadingBounds } from './answer-room';
import { stateOf } from '../requests/request-state';

const MiB = 1024 * 1024;
const BOUNDS: ReadingBounds = {
  stalled_ms: 30_000,
  stalled_bytes: 64 * 1024,
  share_bytes: 32 * MiB,
  all_bytes: 256 * MiB,
};

/** Shorter answers are written in one piece and not counted, because a connection buffers little of them. */
const LARGE_CHARACTERS = 64 * 1024;
const PIECE_BYTES = 64 * 1024;
const RETRY_SECONDS = 5;

/**
 * Sends a body of text. A large one is held once, as bytes, is written as fast as its reader takes it, and is cut off
 * with its connection where the reader takes too little of it.
 * @param refusable true for reads, which are refused while too much waits for the caller or for all; for the answer of
 * a command other readers of the caller are cut
 * @throws ApiError 503
 */
export type SendText = (reply: FastifyReply, text: string, refusable: boolean) => FastifyReply;

export function createSendText(overrides: Partial<ReadingBounds> = {}): SendText {
  const room = createAnswerRoom({ ...BOUNDS, ...overrides });
  return (reply, text, refusable) => {
    if (text.length < LARGE_CHARACTERS) return reply.send(text);
    const { caller } = stateOf(reply.request);
    const body = Buffer.from(text);
    if (!room.ensureCapacity(caller, body.length, refusable)) throw noRoom();
    onAnswerEnd(reply, room.enter(caller, body.length, reply.request.raw.socket));
    return reply.header('content-length', body.length).send(Readable.from(pieces(body), { objectMode: false }));
  };
}

function noRoom(): ApiError {
  const message = 'too much waits for slow readers';
  return new ApiError('INTERNAL_SERVER_ERROR', message, { status: 503, retry_after_seconds: RETRY_SECONDS });
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES);
}
