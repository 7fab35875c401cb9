import { createHash } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { openBlobs } from '../../engines/blobs/open';
import type { Blobs } from '../../engines/blobs/port';
import { attachment, authenticated, command, conflict, download, feature, get, ndjson } from '../../app/operation';
import { permission, post, query, upload } from '../../app/operation';
import { testDatabase, type TestDatabase } from '../support/database';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';
import { keptLog } from '../support/log';
import { until } from '../support/projections';
import { parseAnswer, rawHttp } from '../support/raw-http';
import { sweepUploads } from '../../maintenance/retention/upload-sweep';

/** Files and streams, in and out, over real sockets. */
const CONTENT = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
const SHA = createHash('sha256').update(CONTENT).digest('hex');
let opened: { start: number; end: number }[] = [];
let produced = 0;
let began = 0;
let ended = 0;
/** Blobs that the area of sounds names. */
let named: string[] = [];
/** An upload named `hangs` says that it was begun, and waits. */
let begun: () => void = () => undefined;
let hanging: Promise<void> = Promise.resolve();
/** Requests whose feature was asked for, and the answer to it. */
let judged = 0;
let switched: Promise<boolean> = Promise.resolve(true);
const Named = z.object({ id: z.string() });
const base = { summary: 'x', graphql: null, guard: [authenticated] as const };

async function* bytes(start: number, end: number, failing: boolean) {
  try {
    for (let at = start; at <= end; at += 1000) {
      if (failing && at > 100_000) throw new Error('the disk is gone');
      produced += 1;
      yield CONTENT.subarray(at, Math.min(at + 1000, end + 1));
    }
  } finally {
    ended += 1;
  }
}

async function* lines(id: string) {
  began += 1;
  try {
    if (id === 'broken') throw new Error('the database is gone');
    for (let n = 0; n < (id === 'endless' ? 1_000_000 : 3); n += 1) {
      produced += 1;
      yield { n, text: id === 'endless' ? 'x'.repeat(1000) : `line\n${n}`, secret: 'unnamed' };
      if (id === 'cut' && n === 1) throw new Error('the database is gone');
    }
  } finally {
    ended += 1;
  }
}

const operations = [
  query({
    ...base,
    name: 'playSound',
    rest: get('/v1/sounds/{id}/stream'),
    sends: download('audio/mpeg'),
    input: Named,
    output: z.unknown(),
    run: async ({ input: { id } }) => ({
      content_type: 'audio/mpeg',
      size_bytes: id === 'empty' ? 0 : CONTENT.length,
      etag: SHA,
      cache_control: 'private, max-age=86400, immutable',
      open(range) {
        opened.push(range);
        return bytes(range.start, range.end, id === 'failing');
      },
    }),
  }),
  query({
    ...base,
    name: 'exportReport',
    rest: get('/v1/reports/{id}/export'),
    sends: attachment('text/csv'),
    input: Named,
    output: z.unknown(),
    run: async ({ input: { id } }) => ({
      filename: id === 'odd' ? 'é"\r\n\\x.csv' : 'report.csv',
      content_type: 'text/csv',
      content: id === 'streamed' ? bytes(0, 4999, false) : 'a,b\n',
    }),
  }),
  query({
    ...base,
    name: 'tailEvents',
    rest: get('/v1/tail/{id}'),
    sends: ndjson(),
    input: Named,
    output: z.object({ n: z.int(), text: z.string() }),
    run: async ({ input: { id } }) => lines(id),
  }),
  query({
    ...base,
    name: 'tailWhenOn',
    guard: [authenticated, feature('feature:events')],
    rest: get('/v1/switched-tail/{id}'),
    sends: ndjson(),
    input: Named,
    output: z.object({ n: z.int(), text: z.string() }),
    run: async ({ input: { id } }) => lines(id),
  }),
  query({
    ...base,
    name: 'tailBriefly',
    rest: get('/v1/brief-tail/{id}'),
    sends: ndjson({ stalled_ms: 1000 }),
    input: Named,
    output: z.object({ n: z.int(), text: z.string() }),
    run: async ({ input: { id } }) => lines(id),
  }),
  command({
    ...base,
    name: 'uploadSound',
    rest: post('/v1/sounds', { status: 201 }),
    takes: upload({
      file: 'file',
      most_bytes: 200_000,
      sniff: (head) => (Buffer.from(head).toString('latin1', 0, 3) === 'ID3' ? 'audio/mpeg' : null),
      content_types: ['audio/mpeg'],
      inUse: async (keys) => keys.filter((key) => named.includes(key)),
    }),
    guard: [permission('sounds:create')],
    input: z.object({ name: z.string().max(5).nullish(), volume: z.int().nullish() }),
    output: z.object({ key: z.string(), filename: z.string(), sha256: z.string(), size: z.int(), name: z.string() }),
    errors: { SOUND_EXISTS: conflict('Sound already exists') },
    async run({ input, file, refuse }) {
      if (input.name === 'taken') throw refuse('SOUND_EXISTS');
      if (input.name === 'fails') throw new Error('the answer of the event store was lost');
      if (input.name === 'hangs') {
        begun();
        await hanging;
      }
      const { key, filename, sha256, size_bytes } = file;
      return { key, filename, sha256, size: size_bytes, name: `${input.name} ${input.volume}` };
    },
  }),
  command({
    name: 'plain',
    summary: 'x',
    rest: post('/v1/plain'),
    guard: [authenticated],
    input: z.object({}),
    output: z.object({ done: z.boolean() }),
    run: async () => ({ done: true }),
  }),
];

let t: TestDatabase;
let blobs: Blobs;
let folder: string;
const log = keptLog();
let api: DeclaredApi;
/** Waits briefly for the rest of a body. */
let impatient: DeclaredApi;
beforeAll(async () => {
  t = await testDatabase();
  folder = mkdtempSync(join(tmpdir(), 'lumio-transfers-'));
  blobs = await openBlobs(folder);
  const rights = { account_id: 'a', permissions: new Set(['sounds:create']) };
  const services = {
    blobs,
    db: t.db,
    awaitShown: async () => undefined,
    features: { enabled: () => ((judged += 1), switched) },
  };
  const callers = {
    ada: callerOf(rights),
    bob: callerOf({ account_id: 'a', user_id: 'bob' }),
    limited: callerOf({ account_id: 'a', rate_bucket: 'limited', rate_limit: 100_000 }),
  };
  api = await serveDeclared(operations, services, callers, {}, { log });
  impatient = await serveDeclared(operations, services, callers, { requests: { body_progress: '200ms' } }, { log });
});
afterAll(async () => {
  await Promise.all([api?.close(), impatient?.close()]);
  await blobs?.close();
  await t?.drop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  opened = [];
  produced = 0;
  began = 0;
  ended = 0;
});

interface Got {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
  cut: boolean;
}

/** Node's own client: `fetch` shows neither a cut body nor what HEAD says of the length. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(api.url + path, { method, headers: { authorization: 'Bearer ada', ...headers } });
    asked.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = [];
      const done = (cut: boolean) =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks), cut });
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () => done(false)).once('error', () => done(true));
    });
    asked.end();
  });
}

/** Reads nothing of the answer, and goes away after `reached`. */
function leave(path: string, reached: () => Promise<void>, headers: Record<string, string> = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(api.url + path, { headers: { authorization: 'Bearer ada', ...headers } });
    asked.once('error', reject).once('response', (response) => {
      response.on('error', () => undefined).pause();
      void reached().then(() => {
        asked.off('error', reject).on('error', () => undefined);
        asked.destroy();
        resolve();
      }, reject);
    });
    asked.end();
  });
}

const still = async (): Promise<void> => {
  let before = -1;
  await until(async () => {
    const same = before === produced && produced > 0;
    before = produced;
    return same;
  });
};

describe('a download', () => {
  const sound = '/v1/sounds/x/stream';
  test('is sent whole, with what names this version of it', async () => {
    const { status, headers, body } = await ask(sound);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'audio/mpeg',
      'content-length': '300000',
      'accept-ranges': 'bytes',
      'cache-control': 'private, max-age=86400, immutable',
      etag: `"${SHA}"`,
    });
    expect(body.equals(CONTENT)).toBe(true);
  });

  test.each([
    ['bytes=0-0', 0, 0],
    ['bytes=100-1999', 100, 1999],
    ['bytes=299999-', 299_999, 299_999],
    ['bytes=-5', 299_995, 299_999],
    ['bytes=-900000', 0, 299_999],
    ['bytes=5-900000', 5, 299_999],
  ])('%s', async (range, start, end) => {
    const { status, headers, body } = await ask(sound, { range });
    expect([status, headers['content-range']]).toEqual([206, `bytes ${start}-${end}/300000`]);
    expect(headers['content-length']).toBe(String(end - start + 1));
    expect(body.equals(CONTENT.subarray(start, end + 1))).toBe(true);
    expect(opened).toEqual([{ start, end }]);
  });

  test.each(['bytes=300000-', 'bytes=-0', 'bytes=999999-1000000'])('%s lies outside', async (range) => {
    const { status, headers, body } = await ask(sound, { range });
    expect([status, headers['content-range']]).toEqual([416, 'bytes */300000']);
    expect(JSON.parse(body.toString()).error).toBe('BAD_REQUEST');
    expect(opened).toEqual([]);
  });

  test.each(['bytes=5-4', 'bytes=-', 'bytes=a-b', 'items=0-1', 'bytes=0-1,5-6', 'bytes=99999999999999999-'])(
    '%s is no range: the whole is sent',
    async (range) => {
      expect((await ask(sound, { range })).status).toBe(200);
    },
  );

  test('of which the client has this version is not sent again, and a range of another is the whole', async () => {
    const known = await ask(sound, { 'if-none-match': `"x", W/"${SHA}"` });
    expect([known.status, known.body.length, known.headers.etag]).toEqual([304, 0, `"${SHA}"`]);
    expect((await ask(sound, { 'if-none-match': '"x"' })).status).toBe(200);
    expect((await ask(sound, { range: 'bytes=0-1', 'if-range': `"${SHA}"` })).status).toBe(206);
    expect((await ask(sound, { range: 'bytes=0-1', 'if-range': '"x"' })).status).toBe(200);
  });

  test('HEAD says all of it and opens nothing', async () => {
    const whole = await ask(sound, {}, 'HEAD');
    expect([whole.status, whole.headers['content-length'], whole.body.length]).toEqual([200, '300000', 0]);
    const part = await ask(sound, { range: 'bytes=0-9' }, 'HEAD');
    expect([part.status, part.headers['content-length']]).toEqual([206, '10']);
    expect(opened).toEqual([]);
  });

  test('of nothing has no bytes, and no range', async () => {
    const empty = await ask('/v1/sounds/empty/stream');
    expect([empty.status, empty.headers['content-length']]).toEqual([200, '0']);
    expect((await ask('/v1/sounds/empty/stream', { range: 'bytes=0-0' })).status).toBe(416);
  });

  test('that fails on its way is cut off, and its source is ended', async () => {
    const { status, cut } = await ask('/v1/sounds/failing/stream');
    expect([status, cut, ended]).toEqual([200, true, 1]);
  });
});

describe('an attachment', () => {
  test('has a name that cannot leave its header', async () => {
    const plain = await ask('/v1/reports/x/export');
    expect(plain.headers['content-disposition']).toBe('attachment; filename="report.csv"');
    expect([plain.headers['content-type'], plain.body.toString()]).toEqual(['text/csv', 'a,b\n']);
    const odd = await ask('/v1/reports/odd/export');
    expect(odd.headers['content-disposition']).toBe(
      `attachment; filename="_____x.csv"; filename*=UTF-8''%C3%A9%22%0D%0A%5Cx.csv`,
    );
    expect((await ask('/v1/reports/streamed/export')).body.equals(CONTENT.subarray(0, 5000))).toBe(true);
  });
});

describe('a stream of lines', () => {
  test('is one document a line, of what the output names', async () => {
    const { headers, body } = await ask('/v1/tail/x');
    expect(headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(body.toString()).toBe('{"n":0,"text":"line\\n0"}\n{"n":1,"text":"line\\n1"}\n{"n":2,"text":"line\\n2"}\n');
    expect(ended).toBe(1);
  });

  test('that fails before its first line is answered like any request, later it is cut off', async () => {
    const broken = await ask('/v1/tail/broken');
    expect([broken.status, JSON.parse(broken.body.toString()).error]).toEqual([500, 'INTERNAL_SERVER_ERROR']);
    const cut = await ask('/v1/tail/cut');
    expect([cut.status, cut.cut, ended]).toEqual([200, true, 2]);
  });

  test('waits for a reader that reads nothing, and ends when it goes', async () => {
    await leave('/v1/tail/endless', still);
    expect(produced).toBeLessThan(50_000);
    await until(async () => ended === 1);
    const stopped = produced;
    expect((await ask('/v1/tail/x')).status).toBe(200);
    expect(produced).toBe(stopped + 3);
  });

  test('is cut off from a reader that takes nothing', async () => {
    await leave('/v1/brief-tail/endless', async () => void (await until(() => ended === 1)));
    expect(produced).toBeLessThan(50_000);
  });

  test('is read by one caller four times at once, and again when one has ended', async () => {
    const as = { authorization: 'Bearer limited' };
    let go!: () => void;
    const gone = new Promise<void>((resolve) => (go = resolve));
    const readers = [1, 2, 3, 4].map(() => leave('/v1/tail/endless', () => gone, as));
    await until(() => began === 4);
    const { headers, body } = await ask('/v1/tail/x', as);
    expect([headers['retry-after'], JSON.parse(body.toString()).error]).toEqual(['5', 'RATE_LIMIT_EXCEEDED']);
    expect((await ask('/v1/tail/x')).status).toBe(200);
    go();
    await Promise.all(readers);
    await until(async () => (await ask('/v1/tail/x', as)).status === 200);
  });

  test('whose reader went before it began is not counted for ever', async () => {
    const as = { authorization: 'Bearer limited' };
    let answer!: (on: boolean) => void;
    switched = new Promise((resolve) => (answer = resolve));
    judged = 0;
    const readers = [1, 2, 3, 4].map(() => httpRequest(`${api.url}/v1/switched-tail/x`, { headers: as }).end());
    for (const reader of readers) reader.on('error', () => undefined);
    await until(() => judged === 4);
    for (const reader of readers) reader.destroy();
    // The server has seen that they are gone when it has answered others since.
    for (let n = 0; n < 5; n += 1) expect((await ask('/v1/tail/x')).status).toBe(200);
    answer(true);
    await until(async () => (await ask('/v1/switched-tail/x', as)).status === 200);
    await until(() => ended === began);
  });
});

describe('an upload', () => {
  const mp3 = (bytes: number) => Buffer.concat([Buffer.from('ID3'), CONTENT.subarray(0, bytes - 3)]);
  type Part = [name: string, value: string | Buffer, filename?: string];
  type Answer = { data: { key: string }; error?: string };
  async function send(parts: Part[], { as = 'ada', headers = {} as Record<string, string> } = {}) {
    const form = new FormData();
    for (const [name, value, filename] of parts) {
      if (typeof value === 'string') form.append(name, value);
      else form.append(name, new Blob([new Uint8Array(value)], { type: 'image/png' }), filename ?? 'a.png');
    }
    const response = await fetch(`${api.url}/v1/sounds`, {
      method: 'POST',
      headers: { authorization: `Bearer ${as}`, ...headers },
      body: form,
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer };
  }
  async function stored(): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of blobs.list('uploads/')) keys.push(key);
    return keys;
  }
  afterEach(async () => {
    for (const key of await stored()) await blobs.delete(key);
    // Whatever became of it, an upload that was answered is not under way any more.
    await until(async () => (await t.db.query('select 1 as one from uploads_under_way')).length === 0);
  });

  test.each([
    [
      'before',
      [
        ['name', 'ada'],
        ['volume', '7'],
        ['file', mp3(150_000), '../../etc/a b.mp3'],
      ],
    ],
    [
      'after',
      [
        ['file', mp3(150_000), 'C:\\music\\a b.mp3'],
        ['volume', '7'],
        ['name', 'ada'],
      ],
    ],
  ] as [string, Part[]][])('is kept as it came, with its fields %s', async (_where, parts) => {
    const { status, body } = await send(parts);
    expect(status).toBe(201);
    const content = mp3(150_000);
    const sha256 = createHash('sha256').update(content).digest('hex');
    expect(body.data).toMatchObject({ filename: 'a b.mp3', sha256, size: 150_000, name: 'ada 7' });
    const chunks: Buffer[] = [];
    for await (const chunk of (await blobs.get(body.data.key))!) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).equals(content)).toBe(true);
    expect((await blobs.head(body.data.key))!.content_type).toBe('audio/mpeg');
  });

  test.each<[string, Part[], number, string]>([
    ['too large', [['file', mp3(200_001)]], 413, 'BAD_REQUEST'],
    ['of another type', [['file', CONTENT.subarray(0, 100)]], 400, 'VALIDATION_ERROR'],
    ['empty', [['file', Buffer.alloc(0)]], 400, 'VALIDATION_ERROR'],
    ['missing', [['name', 'ada']], 400, 'VALIDATION_ERROR'],
    [
      'two',
      [
        ['file', mp3(10)],
        ['file', mp3(10)],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    ['under another name', [['sound', mp3(10)]], 400, 'VALIDATION_ERROR'],
    [
      'with a bad field',
      [
        ['file', mp3(10)],
        ['name', 'too long'],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    [
      'with an unknown field',
      [
        ['file', mp3(10)],
        ['other', 'x'],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    [
      'with a field twice',
      [
        ['name', 'a'],
        ['file', mp3(10)],
        ['name', 'b'],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    [
      'with the name of the prototype',
      [
        ['__proto__', 'a'],
        ['file', mp3(10)],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    [
      'with NUL in a field',
      [
        ['name', 'a\0b'],
        ['file', mp3(10)],
      ],
      400,
      'VALIDATION_ERROR',
    ],
    [
      'refused by a rule',
      [
        ['name', 'taken'],
        ['file', mp3(10)],
      ],
      409,
      'CONFLICT',
    ],
  ])('%s is refused and leaves nothing', async (_what, parts, status, code) => {
    const answer = await send(parts);
    expect([answer.status, answer.body.error]).toEqual([status, code]);
    expect(await stored()).toEqual([]);
  });

  test('has no half characters, whatever the charset of its parts', async () => {
    const part = (head: string, body: Buffer) =>
      Buffer.concat([Buffer.from(`--x\r\ncontent-disposition: form-data; ${head}\r\n\r\n`), body, Buffer.from('\r\n')]);
    const half = Buffer.from('a\ud83d', 'utf16le');
    const sendParts = async (...parts: Buffer[]) => {
      const response = await fetch(`${api.url}/v1/sounds`, {
        method: 'POST',
        headers: { authorization: 'Bearer ada', 'content-type': 'multipart/form-data; boundary=x' },
        body: new Uint8Array(Buffer.concat([...parts, Buffer.from('--x--\r\n')])),
      });
      return { status: response.status, body: (await response.json()) as { data?: { filename: string } } };
    };
    const file = part(`name="file"; filename*=utf-16le''a%00%3d%d8`, mp3(10));
    const field = part('name="name"\r\ncontent-type: text/plain; charset=utf-16le', half);
    expect((await sendParts(file)).body.data?.filename).toBe('a\ufffd');
    const refused = await sendParts(field, part('name="file"; filename="a.mp3"', mp3(10)));
    expect(refused).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  });

  test('largest is taken', async () => {
    expect((await send([['file', mp3(200_000)]])).status).toBe(201);
  });

  test('of who may not is refused before its body counts', async () => {
    expect((await send([['other', 'x']], { as: 'bob' })).status).toBe(403);
    expect((await send([['file', mp3(150_000)]], { as: '' })).status).toBe(401);
    expect(await stored()).toEqual([]);
  });

  test('under one Idempotency-Key counts once, and other content is another request', async () => {
    const headers = { 'idempotency-key': 'upload-1' };
    const first = await send([['file', mp3(100)]], { headers });
    const again = await send([['file', mp3(100)]], { headers });
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true']);
    expect(again.body).toEqual(first.body);
    expect((await send([['file', mp3(101)]], { headers })).status).toBe(409);
    expect(await stored()).toEqual([first.body.data.key]);
  });

  test('is multipart and nothing else, and nothing else is multipart', async () => {
    expect((await api.rest('POST', '/v1/sounds', { body: {} })).status).toBe(415);
    const form = new FormData();
    form.append('a', 'b');
    const headers = { authorization: 'Bearer ada' };
    expect((await fetch(`${api.url}/v1/plain`, { method: 'POST', headers, body: form })).status).toBe(415);
    const broken = await api.rest('POST', '/v1/sounds', {
      body: '--x\r\nnonsense',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    });
    expect([broken.status, broken.json.error]).toEqual([400, expect.stringMatching(/BAD_REQUEST|VALIDATION_ERROR/)]);
  });

  test('that breaks off leaves nothing', async () => {
    const boundary = 'xyz';
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n`;
    const asked = httpRequest(`${api.url}/v1/sounds`, {
      method: 'POST',
      headers: { authorization: 'Bearer ada', 'content-type': `multipart/form-data; boundary=${boundary}` },
    });
    asked.on('error', () => undefined);
    asked.write(head);
    asked.write(mp3(50_000));
    await until(async () => (await t.db.query('select 1 as one from uploads_under_way')).length === 1);
    log.lines.length = 0;
    asked.destroy();
    await until(async () => (await t.db.query('select 1 as one from uploads_under_way')).length === 0);
    expect(log.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
    await until(async () => (await stored()).length === 0);
    expect((await send([['file', mp3(10)]])).status).toBe(201);
  });

  test.each([
    ['within its file', 'file', '"; filename="a.mp3', mp3(50_000)],
    ['within its head of a file', 'file', '"; filename="a.mp3', 'ID'],
    ['within a field', 'name', '', 'ad'],
    ['before its first part', 'name', '', null],
  ])('without progress %s ends with 408 and leaves nothing', async (_where, name, filename, content) => {
    const part = `--x\r\ncontent-disposition: form-data; name="${name}${filename}"\r\n\r\n`;
    const head = ['POST /v1/sounds HTTP/1.1', 'host: x', 'authorization: Bearer ada', 'content-length: 150000'];
    const begin = `${head.join('\r\n')}\r\ncontent-type: multipart/form-data; boundary=x\r\n\r\n`;
    log.lines.length = 0;
    const sent = content === null ? begin : Buffer.concat([Buffer.from(begin + part), Buffer.from(content)]);
    const { status, headers, body } = parseAnswer(await rawHttp(impatient.url, sent));
    expect([status, headers.connection, JSON.parse(body)]).toEqual([
      408,
      'close',
      { error: 'BAD_REQUEST', message: 'Nothing of the body arrived for 0.2 s' },
    ]);
    await until(async () => (await t.db.query('select 1 as one from uploads_under_way')).length === 0);
    expect(await stored()).toEqual([]);
    expect(log.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });
});

describe('an upload whose operation fails, or whose process dies', () => {
  const uploads = operations.flatMap(({ takes }) => takes ?? []);
  const sweep = () => sweepUploads({ db: t.db, blobs, uploads });
  const later = () => t.db.query("update uploads_under_way set begun_at = begun_at - interval '25 hours'");
  const send = (name = 'hangs', headers = {}) => {
    const form = new FormData();
    form.append('name', name);
    form.append('file', new Blob([Buffer.from('ID3')]), 'a.mp3');
    const all = { authorization: 'Bearer ada', ...headers };
    return fetch(`${api.url}/v1/sounds`, { method: 'POST', headers: all, body: form });
  };
  /** The upload and its blob, while the operation has not said yet what it does with it. */
  async function cutOff() {
    let goOn: () => void = () => undefined;
    hanging = new Promise((resume) => (goOn = resume));
    const reached = new Promise<void>((resume) => (begun = resume));
    const answer = send();
    await reached;
    const [row] = await t.db.query<{ key: string }>('select key from uploads_under_way');
    return { key: row!.key, answer, goOn };
  }

  test('leaves a blob that is swept a day later, and not while it may still be under way', async () => {
    const { key, answer, goOn } = await cutOff();
    expect(await sweep()).toBe(0);
    expect(await blobs.head(key)).toBeDefined();
    await later();
    expect(await sweep()).toBe(1);
    expect(await blobs.head(key)).toBeUndefined();
    expect(await sweep()).toBe(0);
    goOn();
    await answer;
  });

  test.each([[{}], [{ 'idempotency-key': 'fails-once' }]])(
    'leaves its blob to the sweep, because a record may name it: %j',
    async (headers) => {
      expect((await send('fails', headers)).status).toBe(500);
      const [row] = await t.db.query<{ key: string }>('select key from uploads_under_way');
      expect(await blobs.head(row!.key)).toBeDefined();
      await later();
      expect(await sweep()).toBe(1);
      expect(await blobs.head(row!.key)).toBeUndefined();
    },
  );

  test('leaves a blob that stays where its area names it', async () => {
    const { key, answer, goOn } = await cutOff();
    named = [key];
    await later();
    expect(await sweep()).toBe(0);
    expect(await blobs.head(key)).toBeDefined();
    named = [];
    // It has been asked about: what names it may end, and end it.
    expect(await sweep()).toBe(0);
    goOn();
    expect((await answer).status).toBe(201);
    await blobs.delete(key);
  });

  test('leaves all where an area cannot say, and each page of many is asked about', async () => {
    const keys = Array.from({ length: 150 }, (_, n) => `uploads/left-${n}`);
    for (const key of keys) await blobs.put(key, Buffer.from('x'));
    await t.db.query(`insert into uploads_under_way select unnest($1::text[]), now() - interval '2 days'`, [keys]);
    const away = { inUse: () => Promise.reject(new Error('not built yet')) };
    await expect(sweepUploads({ db: t.db, blobs, uploads: [...uploads, away] })).rejects.toThrow('not built yet');
    expect(await blobs.head(keys[0]!)).toBeDefined();
    named = [keys[120]!];
    expect(await sweep()).toBe(149);
    expect(await blobs.head(keys[120]!)).toBeDefined();
    named = [];
    await blobs.delete(keys[120]!);
  });

  test('costs no longer than the slowest blob of a page takes to go', async () => {
    const keys = ['uploads/slow-1', 'uploads/slow-2', 'uploads/slow-3'];
    await t.db.query(`insert into uploads_under_way select unnest($1::text[]), now() - interval '2 days'`, [keys]);
    const going: string[] = [];
    const slow = {
      async delete(key: string) {
        going.push(key);
        await until(() => going.length === keys.length);
      },
    };
    expect(await sweepUploads({ db: t.db, blobs: slow, uploads })).toBe(3);
  });
});

test('OpenAPI shows what comes in and goes out, and GraphQL none of it', async () => {
  const { json } = await api.rest('GET', '/v1/openapi.json');
  const sound = json.paths['/v1/sounds/{id}/stream'].get;
  expect(Object.keys(sound.responses)).toEqual(expect.arrayContaining(['200', '206', '304', '416']));
  expect(Object.keys(sound.responses['200'].content)).toEqual(['audio/mpeg']);
  expect(sound).not.toHaveProperty('x-graphql');
  expect(json.paths['/v1/tail/{id}'].get.responses['200'].content['application/x-ndjson']['x-line']).toMatchObject({
    properties: { n: {}, text: {} },
  });
  const { schema } = json.paths['/v1/sounds'].post.requestBody.content['multipart/form-data'];
  expect(Object.keys(schema.properties)).toEqual(['name', 'volume', 'file']);
  expect(schema.required).toEqual(['file']);
  const { text } = await api.rest('GET', '/v1/schema');
  expect(text).not.toMatch(/playSound|exportReport|tailEvents|uploadSound/);
});
