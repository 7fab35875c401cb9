import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../../kernel/errors';

const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;

/**
 * The target of a request as a path. A target in absolute form replaces the `Host` header by its own host (RFC 9112
 * §3.2.2).
 */
export function originForm(request: IncomingMessage): string {
  const { url = '/' } = request;
  if (url.startsWith('/')) return url;
  const match = ABSOLUTE.exec(url);
  if (!match) return url;
  request.headers.host = match[1]!;
  const rest = url.slice(match[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * Refusal of a malformed head, which Node would answer without a body, or not at all; null for a sound one. Removes the
 * content type of a request without a body, where it has no meaning.
 */
export function checkHead({ rawHeaders, headers, httpVersion, method }: IncomingMessage): ApiError | null {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) return new ApiError('BAD_REQUEST', 'More than one Host header');
  if (hosts === 0 && httpVersion === '1.1') return new ApiError('BAD_REQUEST', 'The Host header is missing');
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
    return new ApiError('BAD_REQUEST', 'The expectation cannot be met', { status: 417 });
  }
  const empty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (method !== 'GET' && empty) delete headers['content-type'];
  return null;
}
