import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Series {
  type: string;
  labels: string[];
}

/** Sections of docs/operating/metrics.md whose series exist only with some engine. */
const ENGINE_SECTION = /^Only with /;

/** Series of docs/operating/metrics.md by name; `optional` ones need an engine that is not always there. */
export function documentedSeries(): Map<string, Series & { optional: boolean }> {
  const text = readFileSync(join(__dirname, '../../docs/operating/metrics.md'), 'utf8');
  const found = new Map<string, Series & { optional: boolean }>();
  let optional = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('## ')) optional = ENGINE_SECTION.test(line.slice(3));
    const row = /^\| `(\w+)` \| (\w+) \| ([^|]*)\|/.exec(line);
    if (!row) continue;
    const labels = [...row[3]!.matchAll(/`(\w+)`/g)].map((match) => match[1]!).sort();
    if (found.has(row[1]!)) throw new Error(`metrics.md names ${row[1]} twice`);
    found.set(row[1]!, { type: row[2]!, labels, optional });
  }
  return found;
}

/**
 * Series of an exposition by name, with the labels that its samples carry beside the constant ones; `labels` is null
 * without samples.
 */
export function servedSeries(exposition: string): Map<string, { type: string; labels: string[] | null }> {
  const found = new Map<string, { type: string; labels: string[] | null }>();
  let name = '';
  for (const line of exposition.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)/.exec(line);
    if (type) {
      name = type[1]!;
      found.set(name, { type: type[2]!, labels: null });
    }
    const sample = /^[a-zA-Z_:]\w*\{(.*)\} \S+$/.exec(line);
    if (!sample || !line.startsWith(name)) continue;
    const labels = [...sample[1]!.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map((match) => match[1]!);
    found.get(name)!.labels = labels.filter((label) => !['service', 'env', 'le'].includes(label)).sort();
  }
  return found;
}

/** Names that PromQL may use for the documented series: histograms have `_bucket`, `_sum` and `_count`. */
export function queryableNames(): Set<string> {
  const names = new Set<string>();
  for (const [name, { type }] of documentedSeries()) {
    for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) names.add(name + suffix);
  }
  return names;
}
