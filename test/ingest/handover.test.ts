import { RecentRecords } from '../../engines/broker/recent-records';
import type { BrokerRecord } from '../../engines/broker/port';

const record = (partition: number, offset: number): BrokerRecord => ({
  ...{ topic: 't', partition, offset, key: 'k', headers: {}, appended_at: '2026-01-02T03:04:05.000000Z' },
  value: Buffer.from('value'),
});
const records = (partition: number, from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => record(partition, from + n));

describe('records handed over in memory', () => {
  const ask = (handover: RecentRecords, from: ReadonlyMap<number, number>) =>
    handover.take({ from, max_records: 100, max_bytes: 1e6 });
  const offsets = (handover: RecentRecords, from: ReadonlyMap<number, number>) =>
    ask(handover, from)?.records.map(({ partition, offset }) => `${partition}:${offset}`);

  test('stay until the last consumer has read them; who goes back then is sent to the log', () => {
    const handover = new RecentRecords();
    const [fast, slow] = [new Map([[0, 5]]), new Map([[0, 5]])];
    handover.join(fast);
    const leave = handover.join(slow);
    handover.add(0, records(0, 5, 7));
    handover.add(0, records(0, 7, 9));
    expect(offsets(handover, fast)).toEqual(['0:5', '0:6', '0:7', '0:8']);
    fast.set(0, 9);
    expect(offsets(handover, fast)).toEqual([]);
    expect(offsets(handover, slow)).toEqual(['0:5', '0:6', '0:7', '0:8']);
    // In the midst of what was added together.
    slow.set(0, 6);
    expect(offsets(handover, slow)).toEqual(['0:6', '0:7', '0:8']);
    leave();
    expect(offsets(handover, fast)).toEqual([]);
    expect(ask(handover, slow)).toBeUndefined();
    handover.add(0, records(0, 9, 10));
    expect(offsets(handover, fast)).toEqual(['0:9']);
    expect(ask(handover, slow)).toBeUndefined();
  });

  test('of a partition that nobody here reads are not kept, and not taken for all that there is', () => {
    const handover = new RecentRecords();
    const reader = new Map([[0, 0]]);
    handover.join(reader);
    handover.add(0, records(0, 0, 2));
    handover.add(1, records(1, 0, 2));
    expect(offsets(handover, reader)).toEqual(['0:0', '0:1']);
    reader.set(1, 0);
    expect(ask(handover, reader)).toBeUndefined();
    reader.set(1, 2);
    expect(offsets(handover, reader)).toEqual(['0:0', '0:1']);
  });
});
