import { EarlyFrames } from '../../ingest/twitch/early-frames';
import type { EventSubFrame } from '../../vendors/twitch/port';

const frame = (text: string) => ({ text }) as EventSubFrame;

describe('frames of a session that is being opened', () => {
  let handed_over: boolean;
  let delivered: string[];
  let early: EarlyFrames;
  const link = {
    get handed_over() {
      return handed_over;
    },
  };
  function deliver(one: EventSubFrame): void {
    if (!early.hold(one)) delivered.push(one.text);
  }
  function begin(former_reads: boolean): void {
    [handed_over, delivered] = [former_reads, []];
    early = new EarlyFrames(link, deliver);
  }

  test('are delivered at once where no former holder reads', () => {
    begin(false);
    deliver(frame('1'));
    expect(delivered).toEqual(['1']);
  });

  test('are delivered in their order when the session is open', () => {
    begin(true);
    deliver(frame('1'));
    deliver(frame('2'));
    expect(delivered).toEqual([]);
    early.release();
    deliver(frame('3'));
    expect(delivered).toEqual(['1', '2', '3']);
  });

  test('are left to the former holder when the opening fails', () => {
    begin(true);
    deliver(frame('1'));
    expect(early.discard()).toBe(true);
    deliver(frame('2'));
    expect(delivered).toEqual([]);
  });

  test('are delivered when the opening fails after the time of the former holder', () => {
    begin(true);
    deliver(frame('1'));
    handed_over = false;
    expect(early.discard()).toBe(false);
    deliver(frame('2'));
    expect(delivered).toEqual(['1', '2']);
  });

  test('are not kept without a bound', () => {
    begin(true);
    for (let n = 0; n <= 2_000; n += 1) deliver(frame(String(n)));
    expect(delivered).toHaveLength(2_001);
  });

  test('are not kept without a bound of their size', () => {
    begin(true);
    for (let n = 0; n < 4; n += 1) deliver(frame('x'.repeat(1024 * 1024)));
    expect(delivered).toEqual([]);
    deliver(frame('one more'));
    expect(delivered).toHaveLength(5);
  });
});
