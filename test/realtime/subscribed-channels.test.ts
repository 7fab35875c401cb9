import { hashOfName } from '../../lib/hash/shards';
import { SubscribedChannels } from '../../realtime/runtime/delivery/subscribed-channels';

const M = 0x5bd1e995;
/** M times it is 1, of 32 bits. */
const INVERSE = 0xe59b19bd;
const NAMES = 2 ** 16;

/** One name more of one hash, as anybody can make them: the last word undoes what the one before did. */
function* namesOfOneHash(): Generator<string> {
  const bytes = Buffer.from('ws:a--------');
  const mix = (word: number) => ((word = Math.imul(word, M)), Math.imul(word ^ (word >>> 24), M));
  const seed = Math.imul(0x9747b28c ^ bytes.length, M) ^ mix(bytes.readInt32LE(0));
  for (let n = 0x20202020, found = 0; found <= NAMES; n += 1) {
    if ((n & 0x80808080) !== 0) continue;
    let word = Math.imul(Math.imul(seed, M) ^ mix(n), M) ^ 1;
    word = Math.imul(word, INVERSE);
    word = Math.imul(word ^ (word >>> 24), INVERSE);
    if ((word & 0x80808080) !== 0) continue;
    bytes.writeInt32LE(n, 4);
    bytes.writeInt32LE(word, 8);
    found += 1;
    yield bytes.toString('latin1');
  }
}

test('as many names of one hash as 16 bits count hide none of them', () => {
  const heard = new SubscribedChannels<true>();
  const [gone, ...names] = namesOfOneHash();
  for (const name of [gone!, ...names]) heard.set(name, true);
  heard.delete(gone!);
  expect(heard.size).toBe(NAMES);
  const [bit] = [...new Set([...heard.keys()].map(hashOfName))].map((hash) => hash & (heard.filter().length * 8 - 1));
  expect(heard.filter()[bit! >> 3]! & (1 << (bit! & 7))).not.toBe(0);
});
