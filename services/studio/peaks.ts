/** Most peaks of a waveform. */
export const MAX_PEAKS = 200;

/** Peaks of audio of an unknown length, in at most {@link MAX_PEAKS} equal parts, whose lengths double on the way. */
export class Peaks {
  private peaks: number[] = [];
  /** Samples of a part. */
  private width = 1;
  private taken = 0;
  private top = 0;

  add(channels: readonly Float32Array[]): void {
    const length = channels[0]?.length ?? 0;
    for (let index = 0; index < length; index += 1) {
      let loudest = 0;
      for (const channel of channels) loudest = Math.max(loudest, Math.abs(channel[index]!));
      this.take(loudest);
    }
  }

  /** Peaks from 0 to 1; null of no samples. */
  all(): number[] | null {
    const all = this.taken === 0 ? this.peaks : [...this.peaks, this.top];
    if (all.length === 0) return null;
    return (all.length > MAX_PEAKS ? halved(all) : all).map((peak) => Math.round(Math.min(1, peak) * 1_000) / 1_000);
  }

  private take(sample: number): void {
    if (sample > this.top) this.top = sample;
    this.taken += 1;
    if (this.taken < this.width) return;
    if (this.peaks.length === MAX_PEAKS) {
      this.peaks = halved(this.peaks);
      this.width *= 2;
      return;
    }
    this.peaks.push(this.top);
    this.taken = 0;
    this.top = 0;
  }
}

const halved = (peaks: readonly number[]): number[] =>
  Array.from({ length: Math.ceil(peaks.length / 2) }, (_value, index) =>
    Math.max(peaks[2 * index]!, peaks[2 * index + 1] ?? 0),
  );
