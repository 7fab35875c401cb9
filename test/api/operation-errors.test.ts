import { z } from 'zod';
import { authenticated } from '../../access/authorization/guards';
import { command } from '../../app/operation';
import { restBody, toFailure } from '../../api/http/answers/errors';
import { DomainError } from '../../kernel/errors';
import { conflict, invalid, notFound } from '../../kernel/operations/errors';
import { post } from '../../kernel/operations/routes';
import { ran } from '../support/operations';

/** Throws what it is told to, as `run`, `given` and `decide` do. */
const operation = command({
  name: 'fail',
  summary: 'Fails',
  rest: post('/v1/fail'),
  guard: [authenticated],
  input: z.object({ reason: z.string() }),
  output: z.object({}),
  errors: {
    NOTE_NOT_FOUND: notFound('Note not found'),
    TEXT_TAKEN: conflict('{text} is taken by {text}, not by {owner}', { shows: ['id', 'none'] }),
    TEXT_REFUSED: invalid('No {text}'),
  },
  async run({ input, refuse }) {
    if (input.reason === 'own') throw refuse('TEXT_REFUSED', { text: 'shouting' });
    throw new DomainError(input.reason, { text: '{owner}', owner: 'Ada', id: 7, secret: 'x' });
  },
});

async function answerTo(reason: string) {
  const failure = toFailure(await ran(operation, { reason }, {}, {}).catch((error: unknown) => error));
  return { status: failure.status, ...restBody(failure) };
}

test('a declared reason is answered as declared, whoever throws it', async () => {
  expect(await answerTo('own')).toEqual({ status: 400, error: 'VALIDATION_ERROR', message: 'No shouting' });
  expect(await answerTo('NOTE_NOT_FOUND')).toEqual({ status: 404, error: 'NOT_FOUND', message: 'Note not found' });
});

test('facts fill the text once, and only those that are declared are sent', async () => {
  expect(await answerTo('TEXT_TAKEN')).toEqual({
    status: 409,
    error: 'CONFLICT',
    message: '{owner} is taken by {owner}, not by Ada',
    details: { id: 7 },
  });
});

test.each(['UNDECLARED', 'toString', '__proto__', 'constructor'])(
  '%s, which is declared nowhere, is a fault of ours',
  async (reason) => {
    expect(await answerTo(reason)).toEqual({
      status: 500,
      error: 'INTERNAL_SERVER_ERROR',
      message: 'An internal server error occurred',
    });
  },
);
