import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../kernel/errors';

/** Content type that the token endpoint accepts besides JSON. Source: RFC 6749 §4 and appendix B. */
export const FORM_TYPE = 'application/x-www-form-urlencoded';
/** Challenge of the token endpoint's 401. */
export const CLIENT_CHALLENGE = 'Basic realm="lumio", charset="UTF-8"';
const MAX_BYTES = 64 * 1024;

/** A refusal as RFC 6749 §5.2 writes it. */
function invalidRequest(message: string): ApiError {
  const rest_body = { error: 'invalid_request', error_description: message, message };
  return new ApiError('BAD_REQUEST', message, { rest_body });
}

/** Makes the routes of this instance accept forms. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(FORM_TYPE, { parseAs: 'buffer', bodyLimit: MAX_BYTES }, (request, body, done) => {
    try {
      done(null, parseForm(body as Buffer, request.routeOptions.config.parameters));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
}

/**
 * Reads the known parameters of a form.
 * @throws ApiError BAD_REQUEST for a malformed form, and for a repeated parameter, because it is ambiguous
 */
function parseForm(body: Buffer, known: ReadonlySet<string> = new Set()): Record<string, string> {
  const members: Record<string, string> = {};
  for (const [name, value] of readPairs(body)) {
    if (!known.has(name)) continue;
    if (Object.hasOwn(members, name)) throw invalidRequest(`${name}: is given twice`);
    members[name] = value;
  }
  return members;
}

function readPairs(body: Buffer): [string, string][] {
  try {
    if (!isUtf8(body)) throw new TypeError('not UTF-8');
    return body
      .toString('utf8')
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const at = pair.indexOf('=');
        return at === -1 ? [decoded(pair), ''] : [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))];
      });
  } catch {
    throw invalidRequest('The form is malformed');
  }
}

/** @throws URIError, TypeError for bytes that are not text */
function decoded(text: string): string {
  const plain = decodeURIComponent(text.replaceAll('+', ' '));
  if (plain.includes('\0')) throw new TypeError('NUL');
  return plain;
}

/**
 * Adds the client id and secret of HTTP Basic to the body (RFC 6749 §2.3.1, both form-encoded).
 * @throws ApiError BAD_REQUEST when body and header both identify the client, or the header is malformed
 */
export function withClientCredentials(
  authorization: string | undefined,
  body: Record<string, unknown>,
): Record<string, unknown> {
  const encoded = authorization === undefined ? undefined : /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization)?.[1];
  if (encoded === undefined) return body;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  let client_id: string;
  let client_secret: string;
  try {
    client_id = decoded(pair.slice(0, Math.max(colon, 0)));
    client_secret = decoded(pair.slice(colon + 1));
  } catch {
    throw invalidRequest('The client credentials are malformed');
  }
  const said = body.client_id;
  if (body.client_secret !== undefined || (said !== undefined && said !== client_id)) {
    throw invalidRequest('The client is named in two ways');
  }
  return { ...body, client_id, client_secret };
}
