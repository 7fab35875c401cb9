import { connect, createServer, type Socket } from 'node:net';
import { freePort } from './toxiproxy';

interface Api {
  /** From this version on the layout is another one; answers of it pass untouched. */
  flexible: number;
  /** Share of its answers that become errors. */
  share: number;
  /** What a broker may say. */
  codes: readonly number[];
  /**
   * Where the first error code lies in an answer (which begins with its correlation id); undefined when it holds none.
   */
  at(answer: Buffer, version: number): number | undefined;
}

const afterThrottle = () => 8;

/** The code of the first partition of the first topic, in a list that begins at `from`. */
function firstPartition(answer: Buffer, from: number): number | undefined {
  if (answer.readInt32BE(from) < 1) return undefined;
  const partitions = from + 6 + answer.readInt16BE(from + 4);
  return answer.readInt32BE(partitions) < 1 ? undefined : partitions + 8;
}

/** By number. Codes: the protocol's table of errors. */
const APIS: Readonly<Record<number, Api>> = {
  // Produce: not the leader, timed out, too few copies (before and after it was stored), storage error
  0: { flexible: 9, share: 0.03, codes: [6, 7, 19, 20, 56], at: (answer) => firstPartition(answer, 4) },
  // Fetch: unknown partition, not the leader, no copy, storage error, fenced or unknown epoch of the leader
  1: {
    flexible: 12,
    share: 0.05,
    codes: [3, 6, 9, 56, 74, 75],
    at: (answer, version) => firstPartition(answer, version >= 7 ? 14 : 8),
  },
  // ListOffsets: not the leader, no copy, offset not available
  2: { flexible: 6, share: 0.1, codes: [6, 9, 78], at: (answer) => firstPartition(answer, 8) },
  // OffsetCommit: coordinator loads, not the coordinator, wrong generation, unknown member
  8: { flexible: 8, share: 0.3, codes: [14, 16, 22, 25], at: (answer) => firstPartition(answer, 8) },
  // FindCoordinator: none there
  10: { flexible: 3, share: 0.3, codes: [15], at: afterThrottle },
  // JoinGroup: coordinator loads, none there, not the coordinator, unknown member
  11: { flexible: 6, share: 0.3, codes: [14, 15, 16, 25], at: afterThrottle },
  // Heartbeat: none there, not the coordinator, wrong generation, unknown member, rebalance
  12: { flexible: 4, share: 0.5, codes: [15, 16, 22, 25, 27], at: afterThrottle },
  // SyncGroup: the same
  14: { flexible: 4, share: 0.3, codes: [15, 16, 22, 25, 27], at: afterThrottle },
  // InitProducerId: coordinator loads, none there
  22: { flexible: 2, share: 0.3, codes: [14, 15], at: afterThrottle },
};

/** A TCP link to a Kafka broker that understands its protocol, and makes errors of answers. */
export interface KafkaErrors {
  readonly port: number;
  /** Number of the request and code, to how often. */
  readonly injected: ReadonlyMap<string, number>;
  inject(on: boolean): void;
  stop(): Promise<void>;
}

/** Between clients and the broker that advertises `port`. What the broker did stands: only what it says is changed. */
export async function startKafkaErrors(target_port: number, random: () => number, port?: number): Promise<KafkaErrors> {
  const listen = port ?? (await freePort());
  const injected = new Map<string, number>();
  const sockets = new Set<Socket>();
  let on = false;

  const spoil = (answer: Buffer, asked: { api: number; version: number } | undefined) => {
    const api = asked && APIS[asked.api];
    if (!on || !api || asked.version >= api.flexible || random() >= api.share) return;
    const at = api.at(answer, asked.version);
    if (at === undefined || answer.readInt16BE(at) !== 0) return;
    const code = api.codes[Math.floor(random() * api.codes.length)]!;
    answer.writeInt16BE(code, at);
    const name = `${asked.api}:${code}`;
    injected.set(name, (injected.get(name) ?? 0) + 1);
  };

  const server = createServer((near) => {
    const far = connect(target_port, '127.0.0.1');
    const waiting = new Map<number, { api: number; version: number }>();
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()); // cut on one side, cut on the other
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    const asks = frames((frame) => {
      waiting.set(frame.readInt32BE(4), { api: frame.readInt16BE(0), version: frame.readInt16BE(2) });
    });
    near.on('data', (chunk: Buffer) => {
      asks(chunk);
      far.write(chunk);
    });
    const answers = frames((frame) => {
      const correlation = frame.readInt32BE(0);
      spoil(frame, waiting.get(correlation));
      waiting.delete(correlation);
      const size = Buffer.alloc(4);
      size.writeInt32BE(frame.length);
      near.write(size);
      near.write(frame);
    });
    far.on('data', answers);
  });
  await new Promise<void>((done) => server.listen(listen, '127.0.0.1', done));
  return {
    port: listen,
    injected,
    inject: (now) => void (on = now),
    async stop() {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Cuts a stream into the protocol's frames, each without its size. */
function frames(take: (frame: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 4) {
      const end = 4 + rest.readInt32BE(0);
      if (rest.length < end) return;
      take(Buffer.from(rest.subarray(4, end)));
      rest = rest.subarray(end);
    }
  };
}
