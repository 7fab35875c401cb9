/** Pairs of places; a power of two. 256 KB hold some twenty thousand tokens. */
const PAIRS = 16_384;
/** Numbers that one token takes, and of which a pair has two. */
const NUMBERS = 2;

/**
 * Tokens that were right when they were last looked at, by their SHA-256 in hex: 78 bits of each, in memory that does
 * not grow. The newest two of those that share a pair are remembered; one that was forgotten is merely looked at more
 * warily the next time.
 */
export class ProvenTokens {
  private readonly places = new Uint32Array(PAIRS * 2 * NUMBERS);

  has(hash: string): boolean {
    return this.placeOf(hash) >= 0;
  }

  add(hash: string): void {
    if (this.has(hash)) return;
    const pair = pairOf(hash);
    this.places.copyWithin(pair + NUMBERS, pair, pair + NUMBERS);
    this.places[pair] = numberAt(hash, 1);
    this.places[pair + 1] = numberAt(hash, 2);
  }

  delete(hash: string): void {
    const place = this.placeOf(hash);
    if (place >= 0) this.places.fill(0, place, place + NUMBERS);
  }

  /** Negative for one that is not here. */
  private placeOf(hash: string): number {
    const pair = pairOf(hash);
    const [first, second] = [numberAt(hash, 1), numberAt(hash, 2)];
    for (let place = pair; place < pair + 2 * NUMBERS; place += NUMBERS)
      if (this.places[place] === first && this.places[place + 1] === second) return place;
    return -1;
  }
}

const numberAt = (hash: string, index: number): number => parseInt(hash.slice(8 * index, 8 * index + 8), 16);
const pairOf = (hash: string): number => (numberAt(hash, 0) & (PAIRS - 1)) * 2 * NUMBERS;
