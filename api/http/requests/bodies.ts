import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../../kernel/errors';
import { MAX_BODY_BYTES, parseJsonBody } from './json-body';
import { givenTwice, MEMBER_LIMITS, type MemberLimits } from './json-rules';
import { repeatedMember } from './repeated-members';

const unsupported = (message: string) => new ApiError('BAD_REQUEST', message, { status: 415 });

/** Accepts only JSON bodies; Fastify's own parser would accept NUL, huge numbers and deep nesting. */
export function acceptJson(app: FastifyInstance, limits: MemberLimits = MEMBER_LIMITS): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
    (request, body, done) => {
      try {
        if (isEncoded(request.headers['content-encoding']) && body.length > 0) {
          throw unsupported('Unsupported content encoding: send the body as it is');
        }
        const is_proven = request.state !== null && request.state.caller.kind !== 'anonymous';
        const parsed = parseJsonBody(body as Buffer, limits[is_proven ? 'proven' : 'anonymous']);
        const { parameters } = request.routeOptions.config;
        const repeated = parameters && repeatedMember(body.toString('utf8'), parameters);
        if (repeated) throw givenTwice(repeated);
        done(null, parsed);
      } catch (error) {
        done(error as Error, undefined);
      }
    },
  );
  // Any other type is refused unless the body is empty, which the first byte decides; no more is read.
  app.addContentTypeParser('*', (request, payload, done) => {
    let answered = false;
    const finish = (error: Error | null) => {
      if (answered) return;
      answered = true;
      done(error, undefined);
    };
    const refuse = () => finish(unsupported('Unsupported content type: send application/json'));
    if (Number(request.headers['content-length'] ?? 0) > 0) return refuse();
    payload
      .once('data', refuse)
      .once('end', () => finish(null))
      .once('error', finish);
  });
}

function isEncoded(encoding: string | undefined): boolean {
  return encoding !== undefined && !/^\s*(?:identity)?\s*$/i.test(encoding);
}
