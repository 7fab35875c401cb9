import { createFailureLog } from '../../api/http/answers/failure-log';
import { toFailure } from '../../api/http/answers/errors';
import { createBurstLog } from '../../kernel/burst-log';
import { readableLine } from '../../engines/log/readable';
import { EngineUnavailable } from '../../kernel/failures';
import { keptLog } from '../support/log';

describe('a burst in the log', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('of 13,000 refusals in 130 s is a line at its begin, each minute and at its end, which count them all', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    const failure = toFailure(new EngineUnavailable('PostgreSQL', new Error('refused')));
    expect(failure.status).toBe(503);
    for (let n = 0; n < 13_000; n++) {
      const route = n % 2 === 0 ? 'POST /v1/webhooks/kick' : 'GET /v1/events';
      fail(failure, { route, facts: { correlation_id: `c${n}` } }, 'a request failed');
      jest.advanceTimersByTime(10);
    }
    jest.advanceTimersByTime(20_000);
    expect(jest.getTimerCount()).toBe(0);
    const lines = log.lines.filter(({ level }) => level !== 'debug');
    expect(new Set(lines.map(({ level, message }) => `${level} ${message}`))).toEqual(
      new Set(['warn requests were answered to come again']),
    );
    const facts = lines.map(
      (line) => line.facts as { state: string; count: number; by: Record<string, number>; total?: number },
    );
    const first = { count: 1, by: { 'POST /v1/webhooks/kick': 1 }, correlation_id: 'c0' };
    expect(facts[0]).toEqual({ state: 'begun', code: failure.code, ...first });
    expect(facts.map(({ state }) => state)).toEqual(['begun', 'lasting', 'lasting', 'ended']);
    expect(facts.at(-1)!.total).toBe(13_000);
    const sum = (of: (fact: (typeof facts)[number]) => number) => facts.reduce((total, fact) => total + of(fact), 0);
    expect(sum(({ count }) => count)).toBe(13_000);
    expect(sum(({ by }) => by['GET /v1/events'] ?? 0)).toBe(6_500);
    // Each of them for those who look at single requests.
    expect(log.lines.filter(({ level }) => level === 'debug')).toHaveLength(13_000);
  });

  test('begins anew after its end', () => {
    const log = keptLog();
    const note = createBurstLog(log, 'error', 'broken');
    for (const _ of [1, 2]) {
      note({ kind: 'a', facts: {} });
      jest.advanceTimersByTime(10_000);
    }
    const states = log.lines.flatMap(({ level, facts }) =>
      level === 'error' ? [(facts as { state: string }).state] : [],
    );
    expect(states).toEqual(['begun', 'ended', 'begun', 'ended']);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('is of one cause: each code has lines of its own', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    const [one, other] = ['DATABASE_ERROR', 'REDIS_ERROR'] as const;
    for (const code of [one, other, one])
      fail({ ...toFailure(new EngineUnavailable('x', new Error('y'))), code }, { route: 'r', facts: {} }, 'failed');
    const begun = log.lines.filter(({ level }) => level === 'warn').map(({ facts }) => facts);
    expect(begun).toMatchObject([one, other].map((code) => ({ code, state: 'begun', count: 1 })));
  });

  test('holds no failure that somebody has to mend: each is a line', () => {
    const log = keptLog();
    const fail = createFailureLog(log);
    for (const n of [1, 2]) fail(toFailure(new TypeError('x')), { route: 'r', facts: { n } }, 'a request failed');
    expect(log.lines).toEqual([1, 2].map((n) => ({ level: 'error', facts: { n }, message: 'a request failed' })));
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
