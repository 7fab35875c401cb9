import { setTimeout as pause } from 'node:timers/promises';
import { DomainError } from '../../kernel/errors';
import { declaredAnswer } from '../../kernel/operations/errors';
import { events } from '../../read-api/events/events';
import { FairSearchQueue } from '../../read-api/events/fair-search-queue';

/** Work that runs until it is let go. */
function held() {
  let finish!: () => void;
  const ended = new Promise<void>((resolve) => (finish = resolve));
  return { work: () => ended, finish };
}

/** Everything that has been set off takes its course. */
const settled = () => pause(0);

test('one too many is told when to come again', () => {
  const answer = declaredAnswer(events.errors, new DomainError('TOO_MANY_SEARCHES'));
  expect(answer).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', status: 429, retry_after_seconds: 2 });
});

describe('places of searches', () => {
  let turns: FairSearchQueue;
  let started: string[];
  let holds: Map<string, () => void>;
  beforeEach(() => {
    turns = new FairSearchQueue(3, 20);
    started = [];
    holds = new Map();
  });
  afterEach(async () => {
    while (turns.queued > 0 || holds.size > 0) {
      for (const [name, end] of holds) {
        end();
        holds.delete(name);
      }
      await settled();
    }
  });
  /** `name` begins with the account: `a1` is of a. */
  const search = (name: string, wait_ms = 60_000, onGone?: (listener: () => void) => () => void) => {
    const { work, finish } = held();
    holds.set(name, finish);
    const running = turns.run(name[0]!, wait_ms, onGone, async () => {
      started.push(name);
      await work();
      return name;
    });
    running.catch(() => undefined);
    return running;
  };
  const finish = async (name: string) => {
    holds.get(name)!();
    await settled();
  };
  const BUSY = { reason: 'TOO_MANY_SEARCHES' };

  test('an account runs one at a time, and leaves the others theirs', async () => {
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'd1']) void search(name);
    await settled();
    expect(started).toEqual(['a1', 'b1', 'c1']);
    await finish('b1');
    expect(started).toEqual(['a1', 'b1', 'c1', 'd1']);
    await finish('a1');
    expect(started.at(-1)).toBe('a2');
  });

  test('accounts are called in turn, whoever queued most', async () => {
    for (const name of ['x1', 'y1', 'z1', 'a1', 'a2', 'a3', 'b1', 'c1']) void search(name);
    for (const name of ['x1', 'a1', 'b1', 'c1', 'a2']) await finish(name);
    expect(started).toEqual(['x1', 'y1', 'z1', 'a1', 'b1', 'c1', 'a2', 'a3']);
  });

  test('twenty wait, the next is refused; one account cannot fill the queue for the others', async () => {
    const mine = Array.from({ length: 21 }, (_, n) => search(`a${n}`));
    await settled();
    expect([started, turns.queued]).toEqual([['a0'], 20]);
    await expect(search('a21')).rejects.toMatchObject(BUSY);
    for (const name of ['b0', 'c0']) void search(name);
    const theirs = Array.from({ length: 10 }, (_, n) => search(`b${n + 1}`));
    await settled();
    expect([started, turns.queued]).toEqual([['a0', 'b0', 'c0'], 20]);
    // The newest of the account that waits most often made room for each of them, down to an even share.
    for (const refused of mine.slice(11)) await expect(refused).rejects.toMatchObject(BUSY);
    await expect(search('b11')).rejects.toMatchObject(BUSY);
    for (let n = 0; n <= 10; n += 1) for (const name of [`a${n}`, `b${n}`]) await finish(name);
    await expect(Promise.all([...mine.slice(0, 11), ...theirs])).resolves.toHaveLength(21);
    expect(turns.queued).toBe(0);
  });

  test('who waits too long, or has gone, leaves the queue without a place', async () => {
    void search('a1');
    expect(await search('a2', 20)).toBeNull();
    let leave: (() => void) | undefined;
    const stopped: string[] = [];
    const gone = search('a3', 60_000, (listener) => {
      leave = listener;
      return () => void stopped.push('listening');
    });
    await settled();
    expect(turns.queued).toBe(1);
    leave!();
    expect(await gone).toBeNull();
    expect([turns.queued, stopped]).toEqual([0, ['listening']]);
    await finish('a1');
    expect(started).toEqual(['a1']);
    leave!();
    void search('a4');
    await settled();
    expect(started).toEqual(['a1', 'a4']);
  });

  test('a search that fails hands its place on', async () => {
    const failing = turns.run('a', 60_000, undefined, async () => {
      await settled();
      throw new Error('no');
    });
    const next = search('a1');
    await expect(failing).rejects.toThrow('no');
    await finish('a1');
    expect(await next).toBe('a1');
  });
});
