import { createFailureLog } from '../../api/http/answers/failure-log';
import { toFailure } from '../../api/http/answers/errors';
import { createBurstLog } from '../../kernel/burst-log';
import { readableLine } from '../../engines/log/readable';
import { ApiError, NotBuilt } from '../../kernel/errors';
import { EngineUnavailable } from '../../kernel/failures';
import { RevisionConflict } from '../../engines/event-store/port';
import { keptLog } from '../support/log';

const coded = (code: string, facts: object = {}) => Object.assign(new Error(code), { code, ...facts });
const postgres = (code: string) => coded(code, { severity: 'ERROR' });

describe('a burst in the log', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('of 13,000 refusals in 130 s is a line at its begin, each minute and a minute after it, which count them all', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    const error = new EngineUnavailable('kafka', new Error('refused'));
    const failure = toFailure(error);
    expect(failure.status).toBe(503);
    for (let n = 0; n < 13_000; n++) {
      const route = n % 2 === 0 ? 'POST /v1/webhooks/kick' : 'GET /v1/events';
      fail(error, failure, { route, facts: { correlation_id: `c${n}` } }, 'a request failed');
      jest.advanceTimersByTime(10);
    }
    jest.advanceTimersByTime(60_000);
    expect(jest.getTimerCount()).toBe(0);
    const lines = log.lines.filter(({ level }) => level !== 'debug');
    expect(new Set(lines.map(({ level, message }) => `${level} ${message}`))).toEqual(
      new Set(['warn requests fail for a cause that they share']),
    );
    const facts = lines.map(
      (line) => line.facts as { state: string; count: number; by: Record<string, number>; total?: number },
    );
    const first = { count: 1, by: { 'POST /v1/webhooks/kick': 1 }, correlation_id: 'c0' };
    expect(facts[0]).toEqual({ state: 'begun', cause: 'broker', code: failure.code, ...first });
    expect(facts.map(({ state }) => state)).toEqual(['begun', 'lasting', 'lasting', 'lasting', 'ended']);
    expect(facts.at(-1)!.total).toBe(13_000);
    const sum = (of: (fact: (typeof facts)[number]) => number) => facts.reduce((total, fact) => total + of(fact), 0);
    expect(sum(({ count }) => count)).toBe(13_000);
    expect(sum(({ by }) => by['GET /v1/events'] ?? 0)).toBe(6_500);
    // Each of them for those who look at single requests.
    expect(log.lines.filter(({ level }) => level === 'debug')).toHaveLength(13_000);
  });

  test('lasts while its events are less than a minute apart, and begins anew after its end', () => {
    jest.setSystemTime(new Date('2026-11-28T12:00:00.000Z'));
    const log = keptLog();
    const note = createBurstLog(log, 'error', 'broken');
    for (const gap_ms of [11_000, 59_000, 60_000, 60_000]) {
      note({ kind: 'a', facts: {} });
      jest.advanceTimersByTime(gap_ms);
    }
    const facts = log.lines.flatMap(({ level, facts }) => (level === 'error' ? [facts] : []));
    expect(facts).toMatchObject([
      { state: 'begun', count: 1 },
      { state: 'lasting', count: 1 },
      { state: 'lasting', count: 1 },
      { state: 'ended', count: 0, total: 3, latest_at: '2026-11-28T12:01:10.000Z' },
      { state: 'begun', count: 1 },
      { state: 'ended', count: 0, total: 1, latest_at: '2026-11-28T12:02:10.000Z' },
    ]);
    expect(jest.getTimerCount()).toBe(0);
  });

  const room = (text: string) => new ApiError('INTERNAL_SERVER_ERROR', text, { status: 503, retry_after_seconds: 5 });
  const undelivered = (cause: unknown) =>
    new ApiError('DATABASE_ERROR', 'not stored', { status: 503, retry_after_seconds: 5, cause });
  const unavailable = Object.assign(new Error('busy'), { name: 'ProviderUnavailable' });

  test.each<[string, unknown[]]>([
    ['database', [coded('ECONNREFUSED'), postgres('57P03'), undelivered(postgres('57P01')), postgres('28P01')]],
    ['broker', [new EngineUnavailable('kafka', 'x'), undelivered(new EngineUnavailable('kafka', 'x'))]],
    ['event_store', [new EngineUnavailable('kurrentdb', 'x')]],
    [
      'redis',
      [coded('ECONNREFUSED', { command: { name: 'get' } }), Object.assign(new Error('x'), { name: 'RedisAway' })],
    ],
    ['the read model chat is being built', [new NotBuilt('chat')]],
    ['no room left', [room('no room left')]],
    ['ProviderUnavailable', [undelivered(unavailable)]],
  ])('is of one cause: %s has lines of its own', (cause, errors) => {
    const log = keptLog();
    const fail = createFailureLog(log);
    fail(room('other'), toFailure(room('other')), { route: 'r', facts: {} }, 'failed');
    for (const error of errors) fail(error, toFailure(error), { route: 'r', facts: {} }, 'failed');
    jest.advanceTimersByTime(60_000);
    const lines = log.lines.filter(
      ({ level, facts }) => level === 'warn' && !('cause' in facts && facts.cause === 'other'),
    );
    expect(lines.map(({ facts }) => facts)).toMatchObject([
      { cause, state: 'begun', count: 1 },
      { cause, state: 'ended', total: errors.length },
    ]);
  });

  test('holds no failure of one request: each is a line with its correlation id', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    const failures: [string, unknown][] = [
      ['warn', postgres('40P01')],
      ['warn', undelivered(postgres('40001'))],
      ['warn', new RevisionConflict('note-1', 3, 4)],
      ['error', postgres('22P02')],
      ['error', new TypeError('x')],
    ];
    for (const [n, [, error]] of failures.entries())
      fail(error, toFailure(error), { route: 'r', facts: { correlation_id: `c${n}` } }, 'a request failed');
    expect(log.lines).toEqual(
      failures.map(([level], n) => ({ level, facts: { correlation_id: `c${n}` }, message: 'a request failed' })),
    );
    expect(jest.getTimerCount()).toBe(0);
  });

  test('has no more causes than can be looked at', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    for (let n = 0; n < 1_000; n++) {
      const error = room(`no room for ${n}`);
      fail(error, toFailure(error), { route: 'r', facts: {} }, 'failed');
    }
    const causes = log.lines.flatMap(({ level, facts }) =>
      level === 'warn' ? [(facts as { cause: string }).cause] : [],
    );
    expect(causes).toHaveLength(33);
    expect(causes.at(-1)).toBe('other');
  });
});

describe('a line for a person at a terminal', () => {
  const at = new Date(2026, 10, 25, 9, 5, 7).toISOString();
  const readable = (entry: object) => readableLine(`${JSON.stringify({ level: 'warn', time: at, ...entry })}\n`);

  test('is time, level, message and facts', () => {
    expect(readable({ msg: 'work changed hands', kind: 'twitch', taken: 3, names: ['a b'] })).toBe(
      '09:05:07 WARN  work changed hands kind=twitch taken=3 names=["a b"]\n',
    );
  });

  test('has of an error its message, no frames, and is cut at 200 characters', () => {
    const err = { type: 'Error', message: 'no\nroom', code: 'ENOSPC', stack: 'Error: no\n    at x', cause: {} };
    expect(readable({ msg: 'failed', err })).toBe('09:05:07 WARN  failed err="Error ENOSPC: no\\nroom"\n');
    const long = readable({ msg: 'x'.repeat(500) });
    expect([long.length, long.indexOf('\n')]).toEqual([201, 200]);
  });

  test('leaves a text that is no line of the log as it is', () => {
    for (const text of ['lumio ready\n', '{"a":1}\n', 'null\n']) expect(readableLine(text)).toBe(text);
  });
});
