import { RevisionConflict } from '../../engines/event-store/port';
import {
  EngineUnavailable,
  engineOf,
  failureKind,
  isConflict,
  isPassing,
  type FailureKind,
} from '../../kernel/failures';
import { DataError } from '../../kernel/projection';
import { UnreadableEvent } from '../../kernel/upcasters';

const coded = (code: string) => Object.assign(new Error('x'), { code });
const said = (message: string) => new Error(message);
const newer = new UnreadableEvent('thing:happened', 'of a newer build', true);
const older = new UnreadableEvent('thing:happened', 'of no version', false);

const KINDS: Record<FailureKind, readonly unknown[]> = {
  conflict: ['40001', '40P01', '55P03'].map(coded),
  raced: [new RevisionConflict('note-1', 3, 4)],
  away: [
    ...['08006', '57P01', '57P03', '57014', '53100', '53300', '25006', '25P03', '25P04'].map(coded),
    ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_SOCKET'].map(coded),
    said('Connection terminated unexpectedly'),
    said('Query read timeout'),
    said('timeout exceeded when trying to connect'),
    said('Client has encountered a connection error and is not queryable'),
    said('Cannot use a pool after calling end on the pool'),
    Object.assign(new Error('aborted'), { name: 'AbortError' }),
    new EngineUnavailable('kafka', new Error('Closed connection')),
    newer,
  ],
  refused: ['25001', '28P01', '3D000', '55000', '58030', 'F0000', 'XX000'].map(coded),
  data: [...['22P02', '22003', '23505', '54000'].map(coded), new DataError('no number'), older],
  bug: [
    ...['42P01', '42703', '42501', '21000', 'P0001', 'ERR_INVALID_ARG_TYPE'].map(coded),
    new TypeError("Cannot read properties of undefined (reading 'timeout')"),
    said('the socket of this is closed'),
    'a text',
    undefined,
  ],
};

test.each(Object.entries(KINDS))('what is %s', (kind, errors) => {
  expect(errors.map((error) => failureKind(error))).toEqual(errors.map(() => kind));
});

test('what may succeed later as it is: what lost against another one, and what waits for an engine', () => {
  const passing = Object.entries(KINDS).filter(([, errors]) => errors.every(isPassing));
  expect(passing.map(([kind]) => kind)).toEqual(['conflict', 'away']);
  const conflicts = Object.entries(KINDS).filter(([, errors]) => errors.some(isConflict));
  expect(conflicts.map(([kind]) => kind)).toEqual(['conflict']);
});

test('whose error it is', () => {
  const database = [
    Object.assign(coded('42P01'), { severity: 'ERROR' }),
    coded('ECONNREFUSED'),
    Object.assign(coded('EMFILE'), { syscall: 'connect' }),
    said('Connection terminated unexpectedly'),
  ];
  const redis = [
    Object.assign(new Error('MOVED'), { name: 'ReplyError' }),
    Object.assign(new Error('x'), { command: { name: 'get' } }),
  ];
  const nobody = [new EngineUnavailable('kafka', coded('ECONNREFUSED')), coded('42P01'), new TypeError('x'), 'a text'];
  const owners = [database, redis, nobody].map((errors) => [...new Set(errors.map(engineOf))]);
  expect(owners).toEqual([['database'], ['redis'], [undefined]]);
});
