import { byId, shownMs } from './dom';

const KEPT = 120;
const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 600;
const HEIGHT = 80;

/** Latencies of events from `created_at` to this page; the newest last. */
export class Delays {
  private readonly kept: number[] = [];

  add(ms: number): void {
    this.kept.push(ms);
    if (this.kept.length > KEPT) this.kept.shift();
  }

  show(): void {
    if (this.kept.length === 0) return;
    const sorted = [...this.kept].sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
    const [median, p95, most] = [at(0.5), at(0.95), sorted.at(-1)!];
    byId('median').textContent = shownMs(median);
    byId('p95').textContent = shownMs(p95);
    const chart = byId('delays');
    const said = `The last ${sorted.length}: median ${shownMs(median)}, 95 % ${shownMs(p95)}, longest ${shownMs(most)}`;
    chart.setAttribute('aria-label', said);
    chart.replaceChildren(this.drawn(most), scale(most));
  }

  private drawn(most: number): SVGElement {
    const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' });
    const step = WIDTH / KEPT;
    this.kept.forEach((ms, index) => {
      const height = Math.max(2, (ms / Math.max(most, 1)) * HEIGHT);
      const x = (KEPT - this.kept.length + index) * step;
      svg.append(shape('rect', { x, y: HEIGHT - height, width: step * 0.8, height }));
    });
    return svg;
  }
}

function scale(most: number): HTMLElement {
  const label = document.createElement('span');
  label.textContent = shownMs(most);
  return label;
}

function shape(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
