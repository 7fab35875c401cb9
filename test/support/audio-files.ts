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

/** Seconds of silence as Opus in Ogg. */
export function silentOpus(seconds: number): Buffer {
  const page = (flags: number, granule: number, sequence: number, packets: readonly Buffer[]): Buffer => {
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
  };
  const id = Buffer.concat([Buffer.from('OpusHead'), Buffer.from([1, 1, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0])]);
  const tags = Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)]);
  const packets = Array.from({ length: 50 }, () => Buffer.from([0xf8, 0xff, 0xfe]));
  const pages = Array.from({ length: seconds }, (_value, index) =>
    page(index === seconds - 1 ? 4 : 0, 48_000 * (index + 1), index + 2, packets),
  );
  return Buffer.concat([page(2, 0, 0, [id]), page(0, 0, 1, [tags]), ...pages]);
}
