import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../../kernel/errors';
import { onAnswerEnd } from '../answers/answer-end';

/** Looks at a body within the longest time without progress. */
const LOOKS = 4;

/** Answers 408 to a request of whose body nothing arrives for `stalled_ms`, while the server waits for it. */
export function endStalledBodies(app: FastifyInstance, stalled_ms: number): void {
  app.addHook('preParsing', ({ raw }, reply, payload, done) => {
    const { socket } = raw;
    if (!raw.complete) {
      let bytes = socket.bytesRead;
      let idle = 0;
      const timer = setInterval(() => {
        // Bytes that wait in the server are no fault of the client.
        const waits = !raw.complete && !reply.sent && raw.readableLength === 0;
        idle = waits && socket.bytesRead === bytes ? idle + 1 : 0;
        bytes = socket.bytesRead;
        if (idle < LOOKS) return;
        clearInterval(timer);
        const text = `Nothing of the body arrived for ${stalled_ms / 1_000} s`;
        void reply.send(new ApiError('BAD_REQUEST', text, { status: 408 }));
      }, stalled_ms / LOOKS);
      onAnswerEnd(reply, () => clearInterval(timer));
    }
    done(null, payload);
  });
}
