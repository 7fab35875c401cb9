import type { Socket } from 'node:net';
import type { Caller } from '../../access/authentication/caller';
import { createAnswerRoom } from '../../api/http/answers/answer-room';

/** Connection of a reader that takes bytes when the test asks for it. */
class Reader {
  bytesWritten = 0;
  writableLength = 0;
  cut = false;
  readonly socket = this as unknown as Socket;
  takes(bytes: number): void {
    this.bytesWritten += bytes;
  }
  destroy(): void {
    this.cut = true;
  }
}

const user = (user_id: string) =>
  ({ kind: 'jwt', user_id, account_id: null, rate_bucket: user_id, rate_limit: 600 }) as unknown as Caller;
const [ada, bob, eve] = [user('ada'), user('bob'), user('eve')];
const bounds = { stalled_ms: 1000, stalled_bytes: 100, share_bytes: 60, all_bytes: 100 };

describe('the pace of a reader', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** Lets the time pass in steps of 100 ms; in each the reader takes the next number of bytes. */
  const pass = (reader: Reader, taken: readonly number[]) => {
    for (const bytes of taken) {
      reader.takes(bytes);
      jest.advanceTimersByTime(100);
    }
  };
  const times = (count: number, ...bytes: number[]) => Array.from({ length: count }, () => bytes).flat();
  const entered = () => {
    const reader = new Reader();
    return { reader, leave: createAnswerRoom(bounds).enter(ada, 50, reader.socket) };
  };

  test('is enough in bursts; one that takes too little in the time is cut', () => {
    const { reader } = entered();
    pass(reader, times(20, 0, 0, 0, 0, 50));
    expect(reader.cut).toBe(false);
    pass(reader, times(9, 5));
    expect(reader.cut).toBe(false);
    pass(reader, times(1, 5));
    expect(reader.cut).toBe(true);
  });

  test('is not saved up', () => {
    const { reader } = entered();
    pass(reader, [10_000, ...times(9, 0)]);
    expect(reader.cut).toBe(false);
    pass(reader, [0]);
    expect(reader.cut).toBe(true);
  });

  test('is measured no longer than an answer waits', () => {
    const { reader, leave } = entered();
    leave();
    leave();
    pass(reader, times(20, 0));
    expect([reader.cut, jest.getTimerCount()]).toEqual([false, 0]);
  });
});

describe('a full room', () => {
  test('refuses reads of a caller with the most bytes, and of all, and cuts nobody', () => {
    const room = createAnswerRoom(bounds);
    const readers = [new Reader(), new Reader()];
    const leave = room.enter(ada, 50, readers[0]!.socket);
    expect([
      room.ensureCapacity(ada, 10, true),
      room.ensureCapacity(ada, 11, true),
      room.ensureCapacity(bob, 50, true),
    ]).toEqual([true, false, true]);
    room.enter(bob, 50, readers[1]!.socket);
    expect(room.ensureCapacity(eve, 1, true)).toBe(false);
    leave();
    expect([room.ensureCapacity(eve, 50, true), ...readers.map(({ cut }) => cut)]).toEqual([true, false, false]);
  });

  test('counts a caller without a rate limit too', () => {
    const room = createAnswerRoom(bounds);
    const unlimited = { ...ada, kind: 'system_key', rate_limit: null, rate_bucket: 'system' } as Caller;
    room.enter(unlimited, 60, new Reader().socket);
    expect([room.ensureCapacity(unlimited, 1, true), room.ensureCapacity(ada, 1, true)]).toEqual([false, true]);
  });

  test('takes the answer of a command, and cuts readers until it fits, those of its own share first', () => {
    const room = createAnswerRoom(bounds);
    const [own, other] = [new Reader(), new Reader()];
    room.enter(ada, 55, own.socket);
    room.enter(bob, 20, other.socket);
    expect([room.ensureCapacity(ada, 50, false), own.cut, other.cut]).toEqual([true, true, false]);
    const next = new Reader();
    room.enter(ada, 50, next.socket);
    // Of the largest share.
    expect([room.ensureCapacity(eve, 50, false), next.cut, other.cut]).toEqual([true, true, false]);
    // More than the room holds in all.
    expect([room.ensureCapacity(ada, 500, false), other.cut]).toEqual([true, true]);
    expect(room.ensureCapacity(eve, 500, true)).toBe(false);
  });
});
