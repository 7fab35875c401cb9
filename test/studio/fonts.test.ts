import { sharedServer, type SharedServer } from '../support/shared-server';

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});
let calls = 0;
const get = (path: string, headers: Record<string, string> = {}) => {
  calls += 1;
  return fetch(`${server.base_url}/v1/fonts${path}`, {
    headers: { 'x-forwarded-for': `198.19.0.${calls}`, ...headers },
  });
};

test('families are listed, with the scripts that they draw', async () => {
  const { data } = (await (await get('')).json()) as any;
  expect(data.length).toBeGreaterThan(10);
  expect(data.find((one: any) => one.slug === 'noto-sans')).toMatchObject({
    family: 'Noto Sans',
    category: 'sans-serif',
    weights: expect.arrayContaining([400, 700]),
    subsets: expect.arrayContaining(['latin', 'cyrillic', 'greek', 'devanagari']),
  });
});

test('the families of overlays are there, in three scripts at least', async () => {
  const { data } = (await (await get('')).json()) as any;
  for (const family of ['Inter', 'Roboto', 'Open Sans', 'Noto Sans', 'Rubik']) {
    const found = data.find((one: any) => one.family === family);
    expect([family, found?.subsets.length >= 3]).toEqual([family, true]);
  }
});

test('a style sheet names files that are there, of each subset, and may be used everywhere', async () => {
  const css = await get('/Noto%20Sans/css?weights=400,700', { origin: 'https://anywhere.example' });
  expect(css.status).toBe(200);
  expect(css.headers.get('content-type')).toBe('text/css; charset=utf-8');
  expect(css.headers.get('access-control-allow-origin')).toBe('*');
  const text = await css.text();
  expect(text).toContain("font-family: 'Noto Sans'");
  const files = [...text.matchAll(/url\('\/v1\/fonts([^']+)'\)/g)].map(([, path]) => path!);
  expect(files).toHaveLength(2 * 8);
  for (const path of files) {
    const file = await get(path);
    expect([path, file.status, file.headers.get('content-type')]).toEqual([path, 200, 'font/woff2']);
    expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(file.headers.get('access-control-allow-origin')).toBe('*');
    expect(
      Buffer.from(await file.arrayBuffer())
        .subarray(0, 4)
        .toString(),
    ).toBe('wOF2');
  }
  const slices = await (await get('/noto-sans-jp/css?weights=400')).text();
  const [slice] = /[^']+subset=119/.exec(slices)!;
  expect((await get(slice.slice('/v1/fonts'.length))).status).toBe(200);
});

test('a file has ranges and an ETag', async () => {
  const whole = await get('/inter/400.woff2');
  const etag = whole.headers.get('etag')!;
  const bytes = Buffer.from(await whole.arrayBuffer());
  expect((await get('/inter/400.woff2', { 'if-none-match': etag })).status).toBe(304);
  const part = await get('/inter/400.woff2', { range: 'bytes=4-7' });
  expect(part.status).toBe(206);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(4, 8));
});

test.each([
  ['/comic-sans/css', 404],
  ['/comic-sans/400.woff2', 404],
  ['/inter/450.woff2', 404],
  ['/inter/400.woff2?subset=klingon', 404],
  ['/inter/400.woff2?subset=..%2F..%2Fpackage', 404],
  ['/..%2F..%2Fpackage/400.woff2', 404],
  ['/inter/css?weights=450', 400],
  ['/inter/heavy.woff2', 400],
])('%s is %i', async (path, status) => {
  expect((await get(path)).status).toBe(status);
});
