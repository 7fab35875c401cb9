import { createConnection, type Socket } from 'node:net';
import { z } from 'zod';
import { authenticated } from '../../../access/authorization/guards';
import { numbered, query } from '../../../app/operation';
import { get } from '../../../kernel/operations/routes';
import { RawJson } from '../../../lib/json/raw-json';
import { callerOf, serveDeclared, type DeclaredApi } from '../../support/declared-api';
import { promised } from '../../support/patience';

const MiB = 1024 * 1024;
const MEGABYTE = new RawJson(JSON.stringify('x'.repeat(MiB)));
const Great = z.object({ id: z.int(), raw: z.unknown() }).meta({ id: 'Great' });

/** Pages of megabytes. */
const operations = [
  query({
    name: 'greats',
    summary: 'Rows of a megabyte',
    rest: get('/v1/greats'),
    pages: numbered('PaginatedGreatResult', { items: 100 }),
    guard: [authenticated],
    input: z.object({}),
    output: Great,
    async run({ page: { limit, max_bytes } }) {
      const rows = Math.min(limit, Math.ceil(max_bytes / MiB));
      return { items: Array.from({ length: rows }, (_, id) => ({ id, raw: MEGABYTE })), total: 100, cut: rows < limit };
    },
  }),
];

const callers = { ada: callerOf({}) };
const STALLED_MS = 300;
/** Cuts off slow readers early. */
let impatient: DeclaredApi;
beforeAll(async () => {
  const reading = { stalled_ms: STALLED_MS, stalled_bytes: 16 * MiB, share_bytes: 256 * MiB };
  impatient = await serveDeclared(operations, {}, callers, {}, { reading });
});
afterAll(() => impatient?.close());

const ended = (socket: Socket) => new Promise<void>((done) => socket.once('close', () => done()));

/** A connection that has sent `text`; nothing of the answer is read. */
async function deaf(url: string, text: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { port, hostname } = new URL(url);
  const socket = createConnection({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  await new Promise<void>((done) => socket.once('connect', () => done()));
  socket.pause();
  await new Promise<void>((done) => socket.write(text, () => done()));
  return socket;
}

/** TCP connections of this process, both ends of each. */
const connections = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

describe('answers', () => {
  const rows = (alias: string) => `${alias}: greats(limit: 100) { items { id raw } nextCursor }`;

  /** Asks for 12 MiB: more than the kernel takes for a connection that is not read. */
  function great(as: string): string {
    const body = JSON.stringify({ query: `{ ${['a', 'b', 'c'].map(rows).join(' ')} }` });
    const headers = `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    return `POST /v1/gql HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${as}\r\n${headers}\r\n${body}`;
  }

  test('readers that never read hold one answer each and are cut', async () => {
    const before = { connections: connections(), bytes: process.memoryUsage().arrayBuffers };
    const READERS = 8;
    const readers = await Promise.all(Array.from({ length: READERS }, () => deaf(impatient.url, great('ada'))));
    let held = 0;
    await promised(
      async () => {
        held = Math.max(held, process.memoryUsage().arrayBuffers - before.bytes);
        return connections() <= before.connections + READERS || undefined;
      },
      'the server ends its side of all connections',
      20 * STALLED_MS,
    );
    expect(held).toBeLessThan(READERS * 13 * MiB);
    const received = await Promise.all(
      readers.map(async (socket) => {
        let bytes = 0;
        socket.on('data', (chunk) => (bytes += chunk.length)).resume();
        await ended(socket);
        return bytes;
      }),
    );
    expect(Math.max(...received)).toBeLessThan(12 * MiB);
  });
});
