/** Bytes before the samples. */
const MAX_HEAD = 1024 * 1024;
const FORMATS = { pcm: 1, float: 3, extensible: 0xfffe } as const;

interface Format {
  channels: number;
  /** Bytes of a sample of one channel. */
  width: number;
  read(bytes: DataView, at: number): number;
}

/** Decodes WAV as it comes: integers of 8 to 32 bits and floats. */
export class WavDecoder {
  private rest: Buffer = Buffer.alloc(0);
  private format: Format | null = null;
  /** Bytes of samples that are to come; null before them. */
  private left: number | null = null;

  /** Samples of each channel. @throws Error for a form of WAV that is not read */
  decode(chunk: Uint8Array): Float32Array[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    if (this.left === null && !this.readHead()) return [];
    const { channels, width, read } = this.format!;
    const usable = Math.min(this.rest.length, this.left!);
    const frames = Math.floor(usable / (channels * width));
    const view = new DataView(this.rest.buffer, this.rest.byteOffset, this.rest.length);
    const decoded = Array.from({ length: channels }, (_value, channel) =>
      Float32Array.from({ length: frames }, (_sample, frame) => read(view, (frame * channels + channel) * width)),
    );
    this.left! -= frames * channels * width;
    this.rest = this.rest.subarray(frames * channels * width);
    return decoded;
  }

  /** Whether the samples begin. */
  private readHead(): boolean {
    if (this.rest.length > MAX_HEAD) throw new Error('the samples begin too late');
    let at = 12;
    while (at + 8 <= this.rest.length) {
      const name = this.rest.toString('latin1', at, at + 4);
      const size = this.rest.readUInt32LE(at + 4);
      const begin = at + 8;
      if (name === 'data') {
        if (this.format === null) throw new Error('the samples have no format');
        this.rest = this.rest.subarray(begin);
        this.left = size;
        return true;
      }
      if (begin + size > this.rest.length) return false;
      if (name === 'fmt ') this.format = formatOf(this.rest.subarray(begin, begin + size));
      at = begin + size + (size % 2);
    }
    return false;
  }
}

function formatOf(chunk: Buffer): Format {
  const tag = chunk.readUInt16LE(0);
  const kind = tag === FORMATS.extensible ? chunk.readUInt16LE(24) : tag;
  const channels = chunk.readUInt16LE(2);
  const bits = chunk.readUInt16LE(14);
  const read = READERS[`${kind}:${bits}`];
  if (read === undefined || channels === 0 || channels > 64) throw new Error('a form of WAV that is not read');
  return { channels, width: bits / 8, read };
}

const READERS: Readonly<Record<string, Format['read']>> = {
  [`${FORMATS.pcm}:8`]: (bytes, at) => (bytes.getUint8(at) - 128) / 128,
  [`${FORMATS.pcm}:16`]: (bytes, at) => bytes.getInt16(at, true) / 0x8000,
  [`${FORMATS.pcm}:24`]: (bytes, at) => (bytes.getUint16(at, true) + bytes.getInt8(at + 2) * 0x1_0000) / 0x80_0000,
  [`${FORMATS.pcm}:32`]: (bytes, at) => bytes.getInt32(at, true) / 0x8000_0000,
  [`${FORMATS.float}:32`]: (bytes, at) => bytes.getFloat32(at, true),
  [`${FORMATS.float}:64`]: (bytes, at) => bytes.getFloat64(at, true),
};
