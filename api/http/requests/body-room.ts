import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { networkOf } from '../../../access/limits/rate-buckets';
import { ApiError } from '../../../kernel/errors';
import { onAnswerEnd } from '../answers/answer-end';
import { MAX_BODY_BYTES } from './json-body';
import { RATE_LIMIT_MESSAGE } from '../rate-limit';

export interface BodyLimits {
  /** Most bytes of concurrent bodies, of one network and of all. */
  network_bytes: number;
  all_bytes: number;
}

const MiB = 1024 * 1024;
export const BODY_LIMITS: BodyLimits = { network_bytes: 32 * MiB, all_bytes: 128 * MiB };

/** Parts of the room that senders may fill: the rest is kept for callers with a credential. */
const PARTS = { anonymous: 1 / 4, delivery: 1 / 2, proven: 1 };
type Sender = keyof typeof PARTS;

/** Smaller bodies are not counted, because a connection's own buffers are as large. */
const SMALL_BYTES = 16 * 1024;
const RETRY_SECONDS = 5;

/**
 * Bounds the memory of bodies until their request is answered, counted as their bytes arrive, so that connections that
 * send nothing take no room. Multipart bodies are streamed and not counted.
 */
export function boundBodies(app: FastifyInstance, limits: BodyLimits = BODY_LIMITS): void {
  const networks = new Map<string, number>();
  const senders: Record<Sender, number> = { anonymous: 0, delivery: 0, proven: 0 };
  let all = 0;

  function refusalOf(network: string, sender: Sender, bytes: number): ApiError | null {
    if ((networks.get(network) ?? 0) + bytes > limits.network_bytes) {
      return new ApiError('RATE_LIMIT_EXCEEDED', RATE_LIMIT_MESSAGE, { retry_after_seconds: RETRY_SECONDS });
    }
    const part = senders[sender] + bytes > limits.all_bytes * PARTS[sender];
    if (!part && all + bytes <= limits.all_bytes) return null;
    const text = 'the bodies of requests under way have no room left';
    return new ApiError('INTERNAL_SERVER_ERROR', text, { status: 503, retry_after_seconds: RETRY_SECONDS });
  }

  function add(network: string, sender: Sender, bytes: number): void {
    const sum = (networks.get(network) ?? 0) + bytes;
    if (sum === 0) networks.delete(network);
    else networks.set(network, sum);
    senders[sender] += bytes;
    all += bytes;
  }

  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!isCounted(request.raw)) return done(null, payload);
    const network = networkOf(request.client_ip);
    const sender = senderOf(request);
    let held = 0;
    let ended = false;
    const discard = () => payload.unpipe(counted).resume();
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        const refusal = ended ? null : refusalOf(network, sender, chunk.length);
        if (refusal) {
          // The rest of the body is thrown away until the answer has ended the connection.
          void reply.header('connection', 'close');
          discard();
          return next(refusal);
        }
        if (!ended) {
          held += chunk.length;
          add(network, sender, chunk.length);
        }
        next(null, chunk);
      },
    });
    onAnswerEnd(reply, () => {
      ended = true;
      add(network, sender, -held);
      // Bodies that no route reads must not block the next request of the connection.
      discard();
    });
    payload.once('error', (error) => counted.destroy(error));
    done(null, payload.pipe(counted));
  });
}

/** True for bodies that are counted; bodies above the limit are refused before they are read. */
function isCounted({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] === undefined && headers['content-length'] === undefined) return false;
  if (/^multipart\//i.test(headers['content-type'] ?? '')) return false;
  return Number(headers['content-length'] ?? MAX_BODY_BYTES) > SMALL_BYTES;
}

/** Kind of sender. Routes that resolve no caller are webhooks, whose body authenticates the sender. */
function senderOf({ state }: FastifyRequest): Sender {
  if (state === null) return 'delivery';
  return state.caller.kind === 'anonymous' ? 'anonymous' : 'proven';
}
