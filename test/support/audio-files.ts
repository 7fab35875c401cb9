/** Files of audio, made by hand. */

/** WAV of one channel, 8,000 samples a second. */
export function wavFile(data: Buffer, sample_bytes: 1 | 2): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000 * sample_bytes, 28);
  head.writeUInt16LE(sample_bytes, 32);
  head.writeUInt16LE(8 * sample_bytes, 34);
  head.write('data', 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

/** WAV of one channel, 16 bits, 8,000 samples a second. */
export function wav(samples: readonly number[]): Buffer {
  const data = Buffer.alloc(2 * samples.length);
  samples.forEach((sample, index) => data.writeInt16LE(Math.round(sample * 0x7fff), 2 * index));
  return wavFile(data, 2);
}

/** Frames of silence: MPEG 1, layer III, 128 kbit/s, 44,100 samples a second, one channel. */
export function silentMp3(frames: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xff_fb_90_c0, 0);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

function crcOf(width: number, polynomial: number, bytes: Uint8Array): number {
  const top = 2 ** (width - 1);
  const mask = 2 ** width - 1;
  let crc = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const is_set = ((crc & top) !== 0) !== (((byte >> bit) & 1) === 1);
      crc = (crc << 1) & mask;
      if (is_set) crc ^= polynomial;
    }
  }
  return crc >>> 0;
}

/** FLAC of one channel whose frames are constant: 16 bits, 4,096 samples a frame, 44,100 samples a second. */
export function flac(levels: readonly number[]): Buffer {
  const size = 4_096;
  const info = Buffer.alloc(34);
  info.writeUInt16BE(size, 0);
  info.writeUInt16BE(size, 2);
  // 20 bits of the rate, 3 of channels less one, 5 of bits less one, 36 of samples.
  const head = (44_100n << 44n) | (15n << 36n) | BigInt(size * levels.length);
  info.writeBigUInt64BE(head, 10);
  const frames = levels.map((level, index) => {
    const begin = Buffer.from([0xff, 0xf8, 0xc9, 0x08, index]);
    const body = Buffer.alloc(3);
    body.writeInt16BE(Math.round(level * 0x7fff), 1);
    const frame = Buffer.concat([begin, Buffer.from([crcOf(8, 0x07, begin)]), body]);
    const end = Buffer.alloc(2);
    end.writeUInt16BE(crcOf(16, 0x80_05, frame), 0);
    return Buffer.concat([frame, end]);
  });
  return Buffer.concat([Buffer.from('fLaC'), Buffer.from([0x80, 0, 0, 34]), info, ...frames]);
}

function oggCrc(page: Uint8Array): number {
  let crc = 0;
  for (const byte of page) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000_0000) !== 0 ? (crc << 1) ^ 0x04_c1_1d_b7 : crc << 1;
  }
  return crc >>> 0;
}

/** A page of Ogg with whole packets of at most 254 bytes. `flags`: 2 of the first page, 4 of the last. */
function oggPage(flags: number, granule: number, sequence: number, packets: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(27);
  head.write('OggS', 0);
  head[5] = flags;
  head.writeBigInt64LE(BigInt(granule), 6);
  head.writeUInt32LE(7, 14);
  head.writeUInt32LE(sequence, 18);
  head[26] = packets.length;
  const whole = Buffer.concat([head, Buffer.from(packets.map(({ length }) => length)), ...packets]);
  whole.writeUInt32LE(oggCrc(whole), 22);
  return whole;
}

/** Seconds of silence as Opus in Ogg. */
export function silentOpus(seconds: number): Buffer {
  const id = Buffer.concat([Buffer.from('OpusHead'), Buffer.from([1, 1, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0])]);
  const tags = Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)]);
  const packets = Array.from({ length: 50 }, () => Buffer.from([0xf8, 0xff, 0xfe]));
  const pages = Array.from({ length: seconds }, (_value, index) =>
    oggPage(index === seconds - 1 ? 4 : 0, 48_000 * (index + 1), index + 2, packets),
  );
  return Buffer.concat([oggPage(2, 0, 0, [id]), oggPage(0, 0, 1, [tags]), ...pages]);
}

/** Numbers as bits, the lowest of each first. */
function bitsOf(...fields: readonly (readonly [value: number, width: number])[]): Buffer {
  const bits = fields.flatMap(([value, width]) => Array.from({ length: width }, (_bit, at) => (value >> at) & 1));
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  bits.forEach((bit, at) => (bytes[at >> 3]! |= bit << (at & 7)));
  return bytes;
}

/** Seconds of silence as Vorbis in Ogg: one channel, 25,600 samples a second, blocks of 256 samples. */
export function silentVorbis(seconds: number): Buffer {
  const rate = 25_600;
  const named = (type: number, content: Buffer) => Buffer.concat([Buffer.from([type]), Buffer.from('vorbis'), content]);
  const id = Buffer.alloc(23);
  id[4] = 1;
  id.writeUInt32LE(rate, 5);
  // Both sizes of blocks are 2^8; the last bit ends the header.
  id[21] = 0x88;
  id[22] = 1;
  const comments = Buffer.concat([Buffer.alloc(8), Buffer.from([1])]);
  const setup = bitsOf(
    // One code book: two entries of one bit, without vectors.
    ...([
      [0, 8],
      [0x56_43_42, 24],
      [1, 16],
      [2, 24],
      [0, 1],
      [0, 1],
      [0, 5],
      [0, 5],
      [0, 4],
    ] as const),
    // One unused transform of time.
    ...([
      [0, 6],
      [0, 16],
    ] as const),
    // One floor of type 1 without partitions: multiplier 1, positions of 7 bits.
    ...([
      [0, 6],
      [1, 16],
      [0, 5],
      [0, 2],
      [7, 4],
    ] as const),
    // One residue of type 0 over no samples, in one class without books.
    ...([
      [0, 6],
      [0, 16],
      [0, 24],
      [0, 24],
      [0, 24],
      [0, 6],
      [0, 8],
      [0, 3],
      [0, 1],
    ] as const),
    // One mapping, and one mode with it.
    ...([
      [0, 6],
      [0, 16],
      [0, 1],
      [0, 1],
      [0, 2],
      [0, 8],
      [0, 8],
      [0, 8],
    ] as const),
    ...([
      [0, 6],
      [0, 1],
      [0, 16],
      [0, 16],
      [0, 8],
      [1, 1],
    ] as const),
  );
  const begin = oggPage(2, 0, 0, [named(1, id)]);
  const headers = oggPage(0, 0, 1, [named(3, comments), named(5, setup)]);
  // Each packet but the first adds 128 samples; the floor of each is unused.
  const pages = Array.from({ length: 2 * seconds }, (_value, index) => {
    const packets = Array.from({ length: index === 0 ? 101 : 100 }, () => Buffer.from([0]));
    return oggPage(index === 2 * seconds - 1 ? 4 : 0, 12_800 * (index + 1), index + 2, packets);
  });
  return Buffer.concat([begin, headers, ...pages]);
}
