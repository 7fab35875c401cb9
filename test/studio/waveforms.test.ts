import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { MAX_PEAKS, Peaks } from '../../services/studio/peaks';
import { WavDecoder } from '../../services/studio/wav';
import { flac, silentMp3, silentOpus, silentVorbis, wav } from '../support/audio-files';
import { PATIENCE_MS } from '../support/patience';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

/** Threads cannot be started in the process of a test. */
const CHILD = join(__dirname, '../../dist/test/support/audio-child.js');

const peaksIn = (samples: readonly number[]) => {
  const peaks = new Peaks();
  for (const sample of samples) peaks.add([Float32Array.of(sample)]);
  return peaks.all();
};

describe('peaks', () => {
  test('are the loudest samples of at most 200 equal parts', () => {
    expect(peaksIn([])).toBeNull();
    expect(peaksIn([0, -0.5, 2])).toEqual([0, 0.5, 1]);
    for (const length of [199, 200, 201, 401, 100_000]) {
      const loud = Math.floor(length / 2);
      const peaks = peaksIn(Array.from({ length }, (_value, index) => (index === loud ? 1 : 0.25)))!;
      expect(peaks.length).toBeLessThanOrEqual(MAX_PEAKS);
      expect(peaks.length).toBeGreaterThan(MAX_PEAKS / 2 - 1);
      expect(peaks.filter((peak) => peak === 1)).toHaveLength(1);
      expect(Math.abs(peaks.indexOf(1) / peaks.length - 0.5)).toBeLessThan(0.02);
    }
  });

  test('of WAV are found in chunks of every size', () => {
    const file = wav([0, 0.5, -1]);
    for (const size of [1, 7, 100]) {
      const decoder = new WavDecoder();
      const samples: number[] = [];
      for (let at = 0; at < file.length; at += size)
        samples.push(...(decoder.decode(file.subarray(at, at + size))[0] ?? []));
      expect(samples.map((sample) => Math.round(100 * sample) / 100)).toEqual([0, 0.5, -1]);
    }
  });
});

test('a thread is ended when its time is over, and a store that is slow is a failure of the store', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHILD], { encoding: 'utf8', timeout: PATIENCE_MS });
  expect([status, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual({
    ...{ hung: null, after_it: [0.5], stalled: 'StoreTooSlow', silent: 'StoreTooSlow', length: 0 },
    is_missing: null,
  });
});

describe('waveforms on the server', () => {
  let server: TestServer;
  let owner: ApiClient;
  beforeAll(async () => {
    server = await startServer();
    owner = new ApiClient(server.base_url, server.credentials.access_token);
  });
  afterAll(() => server?.dispose());

  async function uploaded(bytes: Buffer) {
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(bytes)]), 'sound');
    const headers = { authorization: `Bearer ${server.credentials.access_token}` };
    const answer = await fetch(`${server.base_url}/v1/sounds`, { method: 'POST', headers, body: form });
    const text = await answer.text();
    expect([answer.status, text]).toEqual([201, expect.any(String)]);
    return JSON.parse(text).data as { id: string; duration_ms: number | null };
  }
  const drawn = (id: string) =>
    eventually<number[]>(
      async () => (await owner.get(`/v1/sounds/${id}`)).body.data.waveform ?? undefined,
      'a waveform',
    );

  test('are drawn of each kind of audio', async () => {
    const loud = Array.from({ length: 8_000 }, (_value, index) => (index < 4_000 ? 0.25 : 0.75));
    const files = {
      wav: wav(loud),
      mp3: silentMp3(100),
      flac: flac([0.25, 0.5, 0.5]),
      opus: silentOpus(2),
      vorbis: silentVorbis(1),
    };
    const found: Record<string, { duration_ms: number | null; peaks: number[] }> = {};
    for (const [kind, bytes] of Object.entries(files)) {
      const { id, duration_ms } = await uploaded(bytes);
      found[kind] = { duration_ms, peaks: await drawn(id) };
      expect(found[kind].peaks.length).toBeLessThanOrEqual(MAX_PEAKS);
    }
    const loudest = (kind: string) => Math.max(...found[kind]!.peaks);
    expect([found.wav!.peaks[0], loudest('wav')]).toEqual([0.25, 0.75]);
    expect([found.flac!.peaks[0], loudest('flac')]).toEqual([0.25, 0.5]);
    expect([loudest('mp3'), loudest('opus'), loudest('vorbis')]).toEqual([0, 0, 0]);
    const lengths = ['wav', 'opus', 'vorbis'].map((kind) => found[kind]!.duration_ms);
    expect(lengths).toEqual([1_000, 2_000, 1_000]);
  });

  test('of a client stay, and a damaged file has none', async () => {
    const damaged = Buffer.concat([flac([0.5]).subarray(0, 30), Buffer.alloc(5_000, 7)]);
    const { id } = await uploaded(damaged);
    const kept = (await uploaded(wav([0.5]))).id;
    await drawn(kept);
    expect((await owner.send('PATCH', `/v1/sounds/${kept}`, { waveform: [1] })).status).toBe(200);
    await drawn((await uploaded(wav([0.25]))).id);
    expect(await drawn(kept)).toEqual([1]);
    expect((await owner.get(`/v1/sounds/${id}`)).body.data).toMatchObject({ waveform: null });
  });
});
