import { Readable } from 'node:stream';
import type { MessagePort } from 'node:worker_threads';
import { Peaks } from './peaks';
import { WavDecoder } from './wav';

export interface AudioTask {
  /** Gives a chunk of the file for each message, and null at its end. */
  port: MessagePort;
  content_type: string;
  reads: 'duration' | 'peaks';
}

/** Bytes that are decoded at a time. */
const CHUNK = 32 * 1024;

interface Decoder {
  decode(chunk: Uint8Array): Promise<Float32Array[]> | Float32Array[];
  flush?(): Promise<Float32Array[]>;
}

/** Reads one file of audio in a thread of its own; null where its content does not allow it. */
export default async function readAudio({ port, content_type, reads }: AudioTask): Promise<number | number[] | null> {
  try {
    return await (reads === 'duration' ? durationIn(port, content_type) : peaksIn(port, content_type));
  } catch {
    // The file has a known beginning and odd contents: it may play, and nothing more is known of it.
    return null;
  }
}

async function durationIn(port: MessagePort, mimeType: string): Promise<number | null> {
  const { parseStream } = await import('music-metadata');
  const audio = Readable.from(chunksOf(port), { objectMode: false });
  const { format } = await parseStream(audio, { mimeType }, { skipCovers: true, duration: true });
  return format.duration === undefined ? null : Math.round(format.duration * 1000);
}

async function peaksIn(port: MessagePort, content_type: string): Promise<number[] | null> {
  const peaks = new Peaks();
  let decoder: Decoder | null = null;
  for await (const chunk of chunksOf(port)) {
    decoder ??= await decoderOf(content_type, chunk);
    for (let at = 0; at < chunk.length; at += CHUNK) peaks.add(await decoder.decode(chunk.subarray(at, at + CHUNK)));
  }
  if (decoder?.flush !== undefined) peaks.add(await decoder.flush());
  return peaks.all();
}

async function* chunksOf(port: MessagePort): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = await new Promise<Uint8Array | null>((resolve) => {
      port.once('message', resolve);
      port.postMessage('more');
    });
    if (chunk === null) return;
    yield chunk;
  }
}

type Made = { channelData: Float32Array[] };
interface WasmDecoder {
  ready: Promise<void>;
  decode(chunk: Uint8Array): Promise<Made> | Made;
  flush?(): Promise<Made>;
}

async function decoderOf(content_type: string, head: Uint8Array): Promise<Decoder> {
  if (content_type === 'audio/wav') return new WavDecoder();
  const decoder = await wasmDecoder(content_type, head);
  await decoder.ready;
  return {
    decode: async (chunk) => (await decoder.decode(chunk)).channelData,
    flush: async () => (await decoder.flush?.())?.channelData ?? [],
  };
}

async function wasmDecoder(content_type: string, head: Uint8Array): Promise<WasmDecoder> {
  switch (content_type) {
    case 'audio/mpeg':
      return new (await import('mpg123-decoder')).MPEGDecoder();
    case 'audio/flac':
      return new (await import('@wasm-audio-decoders/flac')).FLACDecoder();
    default: {
      const is_opus = Buffer.from(head.subarray(0, 64)).includes('OpusHead');
      if (is_opus) return new (await import('ogg-opus-decoder')).OggOpusDecoder();
      return new (await import('@wasm-audio-decoders/ogg-vorbis')).OggVorbisDecoder();
    }
  }
}
