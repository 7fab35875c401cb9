import type { Operation } from '../../app/operation';
import { ERROR_STATUS, type ErrorCode } from '../../kernel/errors';
import type { OperationError } from '../../kernel/operations/errors';
import type { RestRoute } from '../../kernel/operations/routes';
import { AnswerTooLarge } from '../http/answers/answer-size';
import { GENERIC_MESSAGES } from '../http/answers/errors';
import { gateOf, GUARD_MESSAGES } from '../rest/guard';
import { RATE_LIMIT_MESSAGE } from '../http/rate-limit';

type Json = Record<string, unknown>;

/** A refusal of a request in the document. */
interface Refusal {
  code: ErrorCode;
  /** Status, when it differs from the code's own. */
  status?: number | undefined;
  /** Constant text; absent when the text depends on the request. */
  text?: string;
  /** Name of the example in the document. */
  name?: string;
  body?: Json;
}

/**
 * Failure answers of an operation: its declared errors, the refusals of its guards, and the refusals before any
 * operation.
 */
export function failures(operation: Operation, rest: RestRoute): Json {
  const byStatus = new Map<number, Refusal[]>();
  for (const refusal of [...ofTransport(operation, rest), ...ofGuards(operation), ...declared(operation)]) {
    const status = refusal.status ?? ERROR_STATUS[refusal.code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), refusal]);
  }
  const answers: Record<string, Json> = Object.fromEntries(
    [...byStatus].map(([status, refusals]) => [status, answered(refusals)]),
  );
  if (answers[401]) {
    answers[401].headers = {
      'WWW-Authenticate': {
        description: 'What is asked for, and why a credential that was presented did not count.',
        schema: { type: 'string' },
      },
    };
  }
  answers[429]!.headers = RETRY_AFTER;
  answers[431] = HEAD_TOO_LARGE;
  answers[503] = { ...answered(GENERIC), headers: RETRY_AFTER };
  return answers;
}

/** Refusal by the HTTP parser, before a route is known. */
export const HEAD_TOO_LARGE: Json = {
  description: 'BAD_REQUEST: path, query and headers have more than 16 KiB together',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};
export const RETRY_AFTER: Json = {
  'Retry-After': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 } },
};
const GENERIC: readonly Refusal[] = (['INTERNAL_SERVER_ERROR', 'DATABASE_ERROR'] as const).map((code) => ({
  code,
  text: GENERIC_MESSAGES[code],
}));

function ofTransport({ sends }: Operation, rest: RestRoute): Refusal[] {
  return [
    { code: 'BAD_REQUEST' },
    ...(sends ? [] : [{ code: 'BAD_REQUEST', text: new AnswerTooLarge().message } as const]),
    { code: 'VALIDATION_ERROR' },
    { code: 'RATE_LIMIT_EXCEEDED', text: RATE_LIMIT_MESSAGE },
    ...GENERIC,
    ...(rest.method === 'GET'
      ? []
      : ([
          { code: 'CONFLICT', text: 'The Idempotency-Key is in use, or was used for another request' },
          { code: 'BAD_REQUEST', status: 408, text: 'Nothing of the body arrived in time' },
          { code: 'BAD_REQUEST', status: 413, text: 'The request body is too large' },
          { code: 'BAD_REQUEST', status: 415 },
        ] as const)),
  ];
}

function ofGuards(operation: Operation): Refusal[] {
  const gate = gateOf(operation);
  const features = gate.features.map(
    (flag) => ({ code: 'FEATURE_DISABLED', text: GUARD_MESSAGES.feature(flag) }) as const,
  );
  if (gate.everybody) return features;
  const forbidden = [
    ...(gate.first_party ? [GUARD_MESSAGES.first_party] : []),
    ...(gate.system_key ? [GUARD_MESSAGES.system_key] : []),
    ...(gate.account !== null && gate.permissions.length === 0 ? [GUARD_MESSAGES.member] : []),
    ...(gate.active ? [GUARD_MESSAGES.active] : []),
    ...gate.permissions.map(({ permission }) => GUARD_MESSAGES.permission(permission)),
    ...Object.values(gate.chosen?.permissions ?? {}).map((name) => GUARD_MESSAGES.permission(name)),
  ];
  return [
    { code: 'UNAUTHORIZED', text: GUARD_MESSAGES.unauthenticated },
    ...(forbidden.length === 0 ? [GUARD_MESSAGES.first_party] : forbidden).map((text) => {
      return { code: 'FORBIDDEN', text } as const;
    }),
    ...features,
    ...(gate.account !== null && !gate.first_party
      ? [{ code: 'NOT_FOUND', text: GUARD_MESSAGES.no_account } as const]
      : []),
    ...(gate.needs_account ? [{ code: 'BAD_REQUEST', text: GUARD_MESSAGES.account } as const] : []),
  ];
}

const declared = ({ errors }: Operation): Refusal[] =>
  Object.entries<OperationError>(errors).map(([name, { code, status, text, rest_body, rest_code }]) => ({
    name,
    code,
    status,
    text,
    body: rest_body ?? { error: rest_code ?? code, message: text },
  }));

function answered(refusals: readonly Refusal[]): Json {
  const codes = [...new Set(refusals.filter(({ body }) => !body || 'error' in body).map(({ code }) => code))];
  const examples = refusals.flatMap(({ name, body }) => (name ? [[name, { value: body }]] : []));
  const special = refusals.some(({ code, body }) => body && (body.message === undefined || body.error !== code));
  const flat = { allOf: [{ $ref: '#/components/schemas/Error' }, { properties: { error: { enum: codes } } }] };
  return {
    description: [...new Set(refusals.map(({ code, text }) => (text ? `${code}: ${text}` : code)))].join('; '),
    content: {
      'application/json': {
        schema: special ? { anyOf: [flat, { type: 'object', additionalProperties: true }] } : flat,
        ...(examples.length > 0 ? { examples: Object.fromEntries(examples) } : {}),
      },
    },
  };
}
