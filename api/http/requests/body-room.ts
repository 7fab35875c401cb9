import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { networkOf } from '../../../access/limits/rate-buckets';
import { hasOneOf } from '../../../ingest/runtime/webhook/webhook';
import type { Settings } from '../../../kernel/settings/settings';
import { ApiError } from '../../../kernel/errors';
import { onAnswerEnd } from '../answers/answer-end';
import { MAX_BODY_BYTES } from './json-body';

/** Most bytes of concurrent bodies, of one network and of all. */
export type BodyLimits = Pick<Settings['requests'], 'address_body_bytes' | 'body_bytes'>;

/** Parts of the room that senders may fill: the rest is kept for callers with a credential. */
const PARTS = { anonymous: 1 / 4, signed: 1 / 2, proven: 1 };
type Sender = keyof typeof PARTS;

/** Smaller bodies are not counted, because a connection's own buffers are as large. */
const SMALL_BYTES = 16 * 1024;
const RETRY_SECONDS = 5;

/**
 * Bounds the memory of bodies until their request is answered, counted as their bytes arrive, so that connections that
 * send nothing take no room. Multipart bodies are streamed and not counted.
 */
export function boundBodies(app: FastifyInstance, limits: BodyLimits): void {
  const networks = new Map<string, number>();
  const senders: Record<Sender, number> = { anonymous: 0, signed: 0, proven: 0 };
  let all = 0;

  function refusalOf(network: string, sender: Sender, bytes: number): ApiError | null {
    const address_bytes = sender === 'signed' ? 0 : (networks.get(network) ?? 0) + bytes;
    const part_has_room = senders[sender] + bytes <= limits.body_bytes * PARTS[sender];
    if (address_bytes <= limits.address_body_bytes && part_has_room && all + bytes <= limits.body_bytes) return null;
    const text = 'the bodies of requests under way have no room left';
    return new ApiError('INTERNAL_SERVER_ERROR', text, { status: 503, retry_after_seconds: RETRY_SECONDS });
  }

  function add(network: string, sender: Sender, bytes: number): void {
    if (sender !== 'signed') {
      const sum = (networks.get(network) ?? 0) + bytes;
      if (sum === 0) networks.delete(network);
      else networks.set(network, sum);
    }
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
    // A parser reads the refusal; without one, as of a query, an error without a listener would end the process.
    counted.on('error', () => undefined);
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

/** Kind of sender. A vendor sends signed webhooks from few addresses, so that they count in the process alone. */
function senderOf({ state, headers, routeOptions }: FastifyRequest): Sender {
  if (state === null) return hasOneOf(headers, routeOptions.config.signatures ?? []) ? 'signed' : 'anonymous';
  return state.caller.kind === 'anonymous' ? 'anonymous' : 'proven';
}
