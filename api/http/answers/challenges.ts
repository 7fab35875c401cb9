import type { FastifyRequest } from 'fastify';
import type { Resolution } from '../../../access/authentication/resolve';
import { GUARD_MESSAGES } from '../../rest/guard';

const REASONS: Readonly<Record<NonNullable<Resolution['failure']>, string>> = {
  TOKEN_EXPIRED: 'The token has expired',
  UNAUTHORIZED: 'The token is invalid',
};

/**
 * `WWW-Authenticate` of a 401 (RFC 6750 §3): the reason against the presented credential, or the operation's reason
 * against the token in its body; without a credential no reason. Routes of signed deliveries have their own scheme.
 */
export function challengeOf(request: FastifyRequest, message: string): string {
  const scheme = request.routeOptions?.config.challenge;
  if (scheme !== undefined) return scheme;
  const failure = request.state?.failure ?? null;
  const reason = failure === null ? message : REASONS[failure];
  if (reason === GUARD_MESSAGES.unauthenticated) return 'Bearer';
  return `Bearer error="invalid_token", error_description="${reason.replace(/["\\]/g, '\\$&')}"`;
}
