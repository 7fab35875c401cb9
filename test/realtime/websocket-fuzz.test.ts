import { connect } from 'node:net';
import { testDatabase, type TestDatabase } from '../support/database';
import { seeded, until } from '../support/projections';
import { clientFrame, RawSocket, upgradeHead } from '../support/raw-socket';
import { ACCOUNT, Client, realtimeNode, type RealtimeNode } from '../support/realtime';
import { sharedServer } from '../support/shared-server';

const EVENTS = `events:${ACCOUNT}`;
/** The same number plays the same frames again. */
const SEED = Number(process.env.LUMIO_TEST_SEED ?? 20260214);
const SEQUENCES = 250;

let t: TestDatabase;
let node: RealtimeNode;
beforeAll(async () => {
  t = await testDatabase();
  node = await realtimeNode(t, { windows: { silence_ms: 30_000, stall_ms: 30_000, beat_ms: 500 } });
});
afterAll(async () => {
  await node?.stop();
  await t?.drop();
});

/** What a client says, in frames, and what it is owed. */
interface Said {
  bytes: Buffer[];
  /** Types and codes of the answers, in their order; Pong frames are answered beside them. */
  answers: string[];
  pongs: string[];
  /** Close code for what breaks the protocol; null while nothing does. */
  closes: number | null;
}

type Random = () => number;
const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
const letters = (random: Random, length: number): string =>
  Array.from({ length }, () => pick(random, ['a', ' ', 'ä', '😀', '"', '\\', '\u0000', '{'])).join('');

/** A message that is answered, whole. */
function message(random: Random): { payload: string | Buffer; opcode?: number; answer: string } {
  return pick<() => { payload: string | Buffer; opcode?: number; answer: string }>(random, [
    () => ({ payload: '{"type":"ping"}', answer: 'pong' }),
    () => ({ payload: JSON.stringify({ type: 'ping', pad: letters(random, 40) }), answer: 'pong' }),
    () => ({ payload: JSON.stringify({ type: 'subscribe', channel: EVENTS }), answer: 'subscribed' }),
    () => ({
      payload: JSON.stringify({ type: 'subscribe', channel: `x:${letters(random, 9)}` }),
      answer: 'error UNAUTHORIZED',
    }),
    () => ({
      payload: JSON.stringify({ type: 'unsubscribe', channel: letters(random, 20) }),
      answer: 'unsubscribed',
    }),
    () => ({
      payload: JSON.stringify({ type: 'broadcast', channel: `history:${ACCOUNT}`, payload: '{}' }),
      answer: 'error UNAUTHORIZED',
    }),
    () => ({
      payload: JSON.stringify({ type: 'broadcast', channel: EVENTS, payload: `{${letters(random, 5)}` }),
      answer: 'error INVALID_FORMAT',
    }),
    () => ({ payload: letters(random, 30) + '}', answer: 'error INVALID_FORMAT' }),
    () => ({ payload: '['.repeat(60_000), answer: 'error INVALID_FORMAT' }),
    () => ({ payload: '', answer: 'error INVALID_FORMAT' }),
    () => ({ payload: Buffer.from([0xff, 0x00, 0xc3]), opcode: 2, answer: 'error INVALID_FORMAT' }),
    () => ({ payload: 'x'.repeat(65_537 + Math.floor(random() * 100_000)), answer: 'error MESSAGE_TOO_LARGE' }),
  ])();
}

/** What ends the connection, and its code by RFC 6455 §7.4.1. */
const VIOLATIONS: readonly [number, (random: Random) => Buffer][] = [
  [1002, () => clientFrame('{}', { masked: false })],
  [1002, (random) => clientFrame('{}', { reserved: 1 + Math.floor(random() * 7) })],
  [1002, (random) => clientFrame('', { opcode: pick(random, [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) })],
  [1002, () => clientFrame('x', { opcode: 0 })],
  [1002, () => Buffer.concat([clientFrame('x', { fin: false }), clientFrame('y', { opcode: 1 })])],
  [1002, (random) => clientFrame('', { opcode: pick(random, [8, 9, 10]), fin: false })],
  [1002, (random) => clientFrame('x'.repeat(126), { opcode: pick(random, [8, 9, 10]) })],
  [1002, () => clientFrame(Buffer.from([3]), { opcode: 8 })],
  [1002, (random) => clientFrame(closeCode(pick(random, [0, 999, 1004, 1005, 1006, 1015, 2999, 5000])), { opcode: 8 })],
  [1007, () => clientFrame(Buffer.concat([closeCode(1000), Buffer.from([0xc3, 0x28])]), { opcode: 8 })],
  [1007, (random) => clientFrame(Buffer.from(pick(random, NOT_UTF8)))],
  [
    1007,
    (random) => {
      const bad = Buffer.concat([Buffer.from('{"type":"ping","pad":"'), Buffer.from(pick(random, NOT_UTF8))]);
      return Buffer.concat([
        clientFrame(bad.subarray(0, 5), { fin: false }),
        clientFrame(bad.subarray(5), { opcode: 0 }),
      ]);
    },
  ],
  [1009, (random) => clientFrame('', { claimed: BigInt(262_145 + Math.floor(random() * 2 ** 31)) })],
  [1009, () => clientFrame('', { claimed: 2n ** 62n })],
  [1009, () => clientFrame('x'.repeat(262_145))],
  [
    1009,
    () => {
      const pieces = Array.from({ length: 300 }, (_, n) => clientFrame('x', { opcode: n === 0 ? 1 : 0, fin: false }));
      return Buffer.concat(pieces);
    },
  ],
];
/** An overlong form, a surrogate, beyond Unicode, a lone continuation, one cut short. */
const NOT_UTF8 = [[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80], [0xe2, 0x82]] as const;
const closeCode = (code: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(code);
  return bytes;
};

function sequence(random: Random): Said {
  const said: Said = { bytes: [], answers: [], pongs: [], closes: null };
  const ping = () => {
    const payload = letters(random, Math.floor(random() * 12));
    said.bytes.push(clientFrame(payload, { opcode: 9 }));
    said.pongs.push(payload);
  };
  const count = 1 + Math.floor(random() * 12);
  for (let n = 0; n < count; n += 1) {
    if (random() < 0.15) ping();
    if (random() < 0.1) said.bytes.push(clientFrame('unasked', { opcode: 10 }));
    const { payload, opcode = 1, answer } = message(random);
    const data = Buffer.from(payload);
    // In one frame, or in several with control frames between them.
    const pieces = random() < 0.6 ? 1 : 2 + Math.floor(random() * 5);
    for (let piece = 0; piece < pieces; piece += 1) {
      const [from, to] = [piece, piece + 1].map((at) => Math.floor((data.length * at) / pieces));
      const fin = piece === pieces - 1;
      said.bytes.push(clientFrame(data.subarray(from, to), { opcode: piece === 0 ? opcode : 0, fin }));
      if (!fin && random() < 0.3) ping();
    }
    said.answers.push(answer);
  }
  if (random() < 0.7) {
    const [code, violation] = pick(random, VIOLATIONS);
    said.bytes.push(violation(random));
    said.closes = code;
  }
  return said;
}

/** The bytes as a network may deliver them: cut anywhere. */
function* cut(random: Random, bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length;) {
    const size = random() < 0.5 ? 1 + Math.floor(random() * 20) : 1 + Math.floor(random() * bytes.length);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const answersOf = (raw: RawSocket): string[] =>
  raw.messages
    .filter(({ type }) => type !== 'welcome' && type !== 'event')
    .map(({ type, code }) => (code === undefined ? type : `${type} ${code}`));

async function play(seed: number): Promise<void> {
  const random = seeded(seed);
  const said = sequence(random);
  const bytes = Buffer.concat(said.bytes);
  const raw = await RawSocket.open(`${node.url}?token=good`);
  try {
    for (const piece of cut(random, bytes)) {
      raw.write(piece);
      if (random() < 0.1) await new Promise((resolve) => setImmediate(resolve));
    }
    if (said.closes === null) {
      await raw.until(() => answersOf(raw).length >= said.answers.length, 'every answer');
      const pongs = raw.frames.filter(({ opcode }) => opcode === 10).map(({ payload }) => payload.toString());
      expect([seed, answersOf(raw), pongs]).toEqual([seed, said.answers, said.pongs]);
      expect(raw.close_code).toBeNull();
      return;
    }
    await raw.until(() => raw.frames.some(({ opcode }) => opcode === 8), 'the close');
    expect([seed, raw.close_code]).toEqual([seed, said.closes]);
    // What was asked before may still have been worked on; nothing that was not owed was answered.
    const answers = answersOf(raw);
    const error = said.closes === 1009 ? answers.pop() : undefined;
    expect([seed, error]).toEqual([seed, said.closes === 1009 ? 'error MESSAGE_TOO_LARGE' : undefined]);
    expect([seed, answers]).toEqual([seed, said.answers.slice(0, answers.length)]);
  } finally {
    raw.destroy();
  }
}

test(`frames of any kind end in what was asked for, or in the code of their fault (LUMIO_TEST_SEED=${SEED})`, async () => {
  const neighbour = await Client.open(node.url);
  expect(await neighbour.subscribe(EVENTS)).toMatchObject({ type: 'subscribed' });
  for (let from = 0; from < SEQUENCES; from += 25) {
    await Promise.all(Array.from({ length: 25 }, (_, n) => play(SEED + from + n)));
    await neighbour.ask({ type: 'ping' }, 'pong');
  }
  await until(() => node.realtime.stats().sessions === 1);
  expect(node.realtime.stats()).toEqual({ sessions: 1, channels: 1 });
  neighbour.end();
});

test('every kind of fault has its code, also when it is all that is said', async () => {
  const random = seeded(SEED);
  for (const [code, violation] of VIOLATIONS) {
    const raw = await RawSocket.open(`${node.url}?token=good`);
    const bytes = violation(random);
    raw.write(bytes);
    await raw.until(() => raw.frames.some(({ opcode }) => opcode === 8), `code ${code}`);
    expect([bytes.subarray(0, 12).toString('hex'), raw.close_code]).toEqual([
      bytes.subarray(0, 12).toString('hex'),
      code,
    ]);
    raw.destroy();
  }
});

test('bytes that are nothing end the connection, however they come', async () => {
  const random = seeded(SEED);
  await Promise.all(
    Array.from({ length: 60 }, async () => {
      const bytes = Buffer.from(
        Array.from({ length: 1 + Math.floor(random() * 400) }, () => Math.floor(random() * 256)),
      );
      const raw = await RawSocket.open(`${node.url}?token=good`);
      raw.write(bytes);
      if (random() < 0.5) raw.socket.end();
      else raw.socket.resetAndDestroy();
      await new Promise((resolve) => (raw.socket.destroyed ? resolve(null) : raw.socket.once('close', resolve)));
    }),
  );
  await until(() => node.realtime.stats().sessions === 0);
  const alive = await Client.open(node.url);
  expect(await alive.ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
  alive.end();
});

test('compression that is offered is declined, and frames that come with the request are answered', async () => {
  const offers = [`Sec-WebSocket-Extensions: ${Array.from({ length: 50 }, () => 'permessage-deflate').join(', ')}`];
  const raw = await RawSocket.open(`${node.url}?token=good`, offers, clientFrame('{"type":"ping"}'));
  expect(raw.head).toMatch(/^HTTP\/1.1 101 /);
  expect(raw.head.toLowerCase()).not.toContain('extensions');
  await raw.until(() => answersOf(raw).length === 1, 'the pong');
  expect(raw.messages.map(({ type }) => type)).toEqual(['welcome', 'pong']);
  raw.destroy();
});

test('the server as it runs answers hostile upgrades, and lives', async () => {
  const server = await sharedServer();
  const url = server.ws_url;
  const path = new URL(url).pathname;
  const answered = async (head: string) => {
    const { port } = new URL(url);
    const socket = connect({ host: '127.0.0.1', port: Number(port) });
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.write(head);
    await until(() => text.includes('\r\n\r\n'));
    socket.destroy();
    return Number(text.split(' ')[1]);
  };
  const many = (count: number) => Array.from({ length: count }, (_, n) => `x-${n}: v`);
  const address = `x-forwarded-for: 10.77.0.${1 + Math.floor(Math.random() * 250)}`;
  expect(await answered(upgradeHead(path, [address, ...many(150)]))).toBe(431);
  expect(await answered(upgradeHead(path, [address, ...many(2_000)]))).toBe(431);
  expect(await answered(upgradeHead(`${path}?token=${'a'.repeat(8_000)}`, [address]))).toBe(401);
  expect(await answered(upgradeHead(`${path}?token=%00%ff`, [address]))).toBe(401);
  expect(await answered(upgradeHead(`${path}?token=a&token=b`, [address]))).toBe(400);
  expect(await answered(upgradeHead(`${path}/../ws/x`, [address]))).toBe(404);
  expect(await answered(upgradeHead(path, [address]).replace('GET', 'POST'))).toBe(405);
  expect(await answered(upgradeHead(path, [address, 'Origin: https://evil.example']))).toBe(403);
  const raw = await RawSocket.open(url, [address]);
  raw.write(clientFrame('{"type":"ping"}'));
  await raw.until(() => raw.messages.some(({ type }) => type === 'pong'), 'the pong');
  expect(raw.messages.map(({ type }) => type)).toEqual(['welcome', 'pong']);
  raw.destroy();
});
