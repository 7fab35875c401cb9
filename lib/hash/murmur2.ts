const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** Murmur2 of the bytes as a signed 32-bit number, bit for bit as Kafka's default partitioner computes it. */
export function murmur2(data: Buffer): number {
  const { length } = data;
  let hash = SEED ^ length;
  let index = 0;
  for (; index + 4 <= length; index += 4) {
    let word = Math.imul(data.readInt32LE(index), M);
    word = Math.imul(word ^ (word >>> R), M);
    hash = Math.imul(hash, M) ^ word;
  }
  const rest = length - index;
  if (rest === 3) hash ^= data[index + 2]! << 16;
  if (rest >= 2) hash ^= data[index + 1]! << 8;
  if (rest >= 1) hash = Math.imul(hash ^ data[index]!, M);
  hash = Math.imul(hash ^ (hash >>> 13), M);
  return hash ^ (hash >>> 15);
}

/** Partition of a key among `parts`, equal to the choice of Kafka's own clients. */
export const partOf = (key: string, parts: number): number => (murmur2(Buffer.from(key)) & 0x7fffffff) % parts;
