import sharp from 'sharp';
import { sniffUpload } from '../../domain/studio/uploads';
import { encodeAgain, TooManyImages } from '../../services/studio/images';
import { silence } from '../support/uploaded-sound';
import { picture, uploadFile } from '../support/uploaded-image';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let account_id: string;
beforeAll(async () => {
  server = await startServer();
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  ({ account_id } = server.credentials);
});
afterAll(() => server?.dispose());

const upload = (bytes: Buffer, options = {}) =>
  uploadFile(server.base_url, server.credentials.access_token, bytes, options);
const limits = (named: Record<string, number>) =>
  owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
    features: [],
    limits: Object.entries(named).map(([name, value]) => ({ name, value })),
  });
const total = async (): Promise<number> => (await owner.gql('{ uploads { total } }')).data.uploads.total;
const content = (path: string) => fetch(server.base_url + path);

test('a picture is kept upright and without metadata, listed, sent by its link, and deleted with its content', async () => {
  const shot = await picture(30, 20)
    .jpeg()
    .withExif({ IFD0: { Copyright: 'Secret place', Orientation: '6' } })
    .toBuffer();
  expect(shot.includes('Secret place')).toBe(true);
  const filename = 'C:\\photos\\me\u202egpj.jpg';
  const made = await upload(shot, { filename, fields: { purpose: 'alert' } });
  expect(made).toMatchObject({
    status: 201,
    body: { data: { filename: 'megpj.jpg', content_type: 'image/jpeg', purpose: 'alert' } },
  });
  const { id, download_url, size_bytes } = made.body.data;
  const sent = await content(download_url);
  expect([sent.status, sent.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
  expect(sent.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
  expect(sent.headers.get('x-content-type-options')).toBe('nosniff');
  const bytes = Buffer.from(await sent.arrayBuffer());
  expect([bytes.length, bytes.includes('Secret place')]).toEqual([size_bytes, false]);
  expect((await sharp(bytes).metadata()).exif).toBeUndefined();
  expect((await content(`/v1/uploads/${id}/content`)).status).toBe(401);
  expect((await content(download_url.replace(/.$/, '_'))).status).toBe(401);

  const later = (await upload(silence(1), { filename: 'horn.wav' })).body.data;
  expect(later).toMatchObject({ content_type: 'audio/wav', purpose: 'overlay' });
  const { data } = await owner.gql('{ uploads(limit: 1) { total items { id } } }');
  expect(data.uploads).toEqual({ total: 2, items: [{ id: later.id }] });
  expect((await owner.get(`/v1/uploads/${id}`)).body.data).toMatchObject({ id, download_url });
  expect((await owner.send('DELETE', `/v1/uploads/${id}`, undefined)).status).toBe(204);
  expect((await owner.send('DELETE', `/v1/uploads/${id}`, undefined)).status).toBe(404);
  await eventually(async () => (await content(download_url)).status === 404 || undefined, 'the end of the link');
});

test('an animation keeps its frames, and a picture of too many pixels over all frames is refused', async () => {
  const frames = (count: number, side: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        sharp({ create: { width: side, height: side, channels: 3, background: { r: n * 60, g: 0, b: 0 } } })
          .png()
          .toBuffer(),
      ),
    );
  const gif = await sharp(await frames(3, 10), { join: { animated: true } })
    .gif()
    .toBuffer();
  const made = (await upload(gif, { filename: 'party.gif' })).body.data;
  const bytes = Buffer.from(await (await content(made.download_url)).arrayBuffer());
  expect((await sharp(bytes, { animated: true }).metadata()).pages).toBe(3);
  const huge = await picture(11_000, 10_000).png({ compressionLevel: 1 }).toBuffer();
  expect(await upload(huge)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
});

test('other files, damaged ones, and bytes over the limits of the account are refused and leave nothing', async () => {
  const before = await total();
  const png = await picture(64, 64).png().toBuffer();
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>');
  for (const bytes of [svg, Buffer.from('<html>'), Buffer.concat([png.subarray(0, 60), Buffer.alloc(40)])])
    expect(await upload(bytes)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  expect(await upload(png, { fields: { purpose: 'other' } })).toMatchObject({ status: 400 });
  await limits({ max_upload_size_bytes: 100 });
  expect((await upload(silence(1))).status).toBe(413);
  const kept = 8_044;
  const used = (await owner.get('/v1/uploads?limit=100')).body.items.reduce(
    (sum: number, one: { size_bytes: number }) => sum + one.size_bytes,
    0,
  );
  await limits({ max_upload_size_bytes: 1_000_000, max_storage_bytes: used + 2 * kept });
  const race = await Promise.all([1, 2, 3].map(() => upload(silence(1))));
  expect(race.map(({ status }) => status).sort()).toEqual([201, 201, 403]);
  expect(race.find(({ status }) => status === 403)!.body.message).toBe('Plan limit reached: max_storage_bytes');
  await limits({ max_upload_size_bytes: 1_000_000, max_storage_bytes: 100_000_000 });
  expect(await total()).toBe(before + 2);
});

test('links count in a bucket of their account, however many pages a network has', async () => {
  const { download_url } = (await upload(silence(1))).body.data;
  // An anonymous network has 120 requests a minute.
  const statuses: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const asked = Array.from({ length: 30 }, () => fetch(server.base_url + download_url, { method: 'HEAD' }));
    statuses.push(...(await Promise.all(asked)).map(({ status }) => status));
  }
  expect(new Set(statuses)).toEqual(new Set([200]));
  const counted = await content(download_url);
  expect(counted.headers.get('ratelimit-limit')).toBe('600');
  const changed = await Promise.all(Array.from({ length: 130 }, () => content(download_url.replace(/.$/, '_'))));
  expect(new Set(changed.map(({ status }) => status))).toEqual(new Set([401, 429]));
  expect((await content(download_url)).status).toBe(200);
});

test('a repeated upload is one', async () => {
  const [first, again] = [await upload(silence(1), { key: 'once' }), await upload(silence(1), { key: 'once' })];
  expect([first.status, again.body]).toEqual([201, first.body]);
});

test.each([
  ['image/avif', '\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf'],
  ['image/webp', 'RIFF\0\0\0\0WEBPVP8 '],
  ['audio/ogg', 'OggS\0'],
  [null, '\0\0\0\x18ftypmp42\0\0\0\0mp42isom'],
  [null, '\0\0\0\x10ftyp'],
])('the first bytes of %s are known', (content_type, head) => {
  expect(sniffUpload(Buffer.from(head, 'latin1'))).toBe(content_type);
});

test('one image is read at a time, and one more than may wait is refused until there is room', async () => {
  let reading = 0;
  const cuts: (() => void)[] = [];
  const blobs = {
    get: () => {
      reading += 1;
      return new Promise<never>((_resolve, reject) => cuts.push(() => reject(new Error('cut'))));
    },
    put: () => Promise.reject(new Error('nothing is put')),
  };
  const begin = () => encodeAgain(blobs, 'k', 'image/png').catch((error: Error) => error);
  const begun = Array.from({ length: 21 }, begin);
  expect(await begin()).toMatchObject({ status: 503, retry_after_seconds: 10 });
  expect(reading).toBe(1);
  cuts.shift()!();
  expect(await begun[0]).toMatchObject({ message: 'cut' });
  begun.push(begin());
  expect(await begin()).toBeInstanceOf(TooManyImages);
  for (const one of begun.slice(1)) {
    await eventually(async () => cuts.length > 0 || undefined, 'the next');
    cuts.shift()!();
    expect(await one).toMatchObject({ message: 'cut' });
  }
});
