/** Number of pairs of slots; a power of two. 256 KB hold some twenty thousand tokens. */
const PAIRS = 16_384;
/** 32-bit numbers per slot. */
const NUMBERS = 2;

/**
 * Set of tokens that were valid at their last look-up, by their SHA-256 in hex: 78 bits of each, in memory of a fixed
 * size. Each pair of slots holds the newest two of its tokens; an evicted valid token only costs a slower look-up.
 */
export class RecentlyValidTokens {
  private readonly places = new Uint32Array(PAIRS * 2 * NUMBERS);

  has(hash: string): boolean {
    return this.slotOf(hash) >= 0;
  }

  add(hash: string): void {
    if (this.has(hash)) return;
    const pair = pairOf(hash);
    this.places.copyWithin(pair + NUMBERS, pair, pair + NUMBERS);
    this.places[pair] = numberAt(hash, 1);
    this.places[pair + 1] = numberAt(hash, 2);
  }

  delete(hash: string): void {
    const place = this.slotOf(hash);
    if (place >= 0) this.places.fill(0, place, place + NUMBERS);
  }

  /** Index of the token's slot; -1 when absent. */
  private slotOf(hash: string): number {
    const pair = pairOf(hash);
    const [first, second] = [numberAt(hash, 1), numberAt(hash, 2)];
    for (let place = pair; place < pair + 2 * NUMBERS; place += NUMBERS)
      if (this.places[place] === first && this.places[place + 1] === second) return place;
    return -1;
  }
}

const numberAt = (hash: string, index: number): number => parseInt(hash.slice(8 * index, 8 * index + 8), 16);
const pairOf = (hash: string): number => (numberAt(hash, 0) & (PAIRS - 1)) * 2 * NUMBERS;
