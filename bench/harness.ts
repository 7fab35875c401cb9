import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Logger } from '../engines/log/port';

/** The project's folder; compiled files lie in dist/bench. */
export const ROOT = existsSync(join(__dirname, '../package.json'))
  ? resolve(__dirname, '..')
  : resolve(__dirname, '../..');

export interface TrackOptions {
  /** Seconds instead of minutes: proves that the track runs, not how fast. */
  smoke: boolean;
}

/** A package that only benchmarks use, from bench/node_modules. */
export function peer<T>(name: string): T {
  return createRequire(join(ROOT, 'bench/package.json'))(name) as T;
}

/** Folder of a peer's files. */
export const peerFolder = (name: string): string => join(ROOT, 'bench/node_modules', name);

export const rounded = (value: number): number => Math.round(value * 100) / 100;

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const quiet: Logger = { debug() {}, info() {}, warn() {}, error: console.error, child: () => quiet };
