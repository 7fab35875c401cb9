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
const bounds = { stalled_ms: 1000, bytes_per_second: 100, share_bytes: 60, all_bytes: 100 };

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

  test('counts as an average: a reader in bursts is not cut, a slower one is cut once it is behind far enough', () => {
    const { reader } = entered();
    pass(reader, times(20, 0, 0, 0, 0, 50));
    expect(reader.cut).toBe(false);
    // At half the pace a second is lost in two.
    pass(reader, times(19, 5));
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
  test('refuses a read of the largest share, and cuts the reader of a larger one', () => {
    const room = createAnswerRoom(bounds);
    const reader = new Reader();
    room.enter(ada, 50, reader.socket);
    expect([room.makeRoom(ada, 11, true), room.makeRoom(bob, 51, true)]).toEqual(['share', 'all']);
    expect([reader.cut, room.makeRoom(bob, 50, true)]).toEqual([false, null]);
    room.enter(bob, 50, new Reader().socket);
    expect([room.makeRoom(eve, 20, true), reader.cut]).toEqual([null, true]);
  });

  test('takes the answer of a command, and cuts readers until it fits, also those of its own share', () => {
    const room = createAnswerRoom(bounds);
    const [own, other] = [new Reader(), new Reader()];
    room.enter(ada, 55, own.socket);
    room.enter(bob, 20, other.socket);
    expect(room.makeRoom(ada, 50, true)).toBe('share');
    expect([room.makeRoom(ada, 50, false), own.cut, other.cut]).toEqual([null, true, false]);
    const next = new Reader();
    room.enter(ada, 50, next.socket);
    // More than the room holds in all.
    expect([room.makeRoom(ada, 500, false), next.cut, other.cut]).toEqual([null, true, true]);
    expect(room.makeRoom(eve, 500, true)).toBe('share');
  });
});
