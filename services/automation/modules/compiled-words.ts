import { LRUCache } from 'lru-cache';
import type { ModuleConfig } from '../../../domain/automation/modules/module-configs';
import { compileWords, type WordFilter } from '../../../domain/automation/modules/word-filter';

/** Characters of the configs whose compiled words are remembered. */
const REMEMBERED = 2_000_000;
const compiled = new LRUCache<string, WordFilter>({
  maxSize: REMEMBERED,
  sizeCalculation: (_filter, config) => config.length,
});

/** Compiled words of a config of the word filter, as JSON text. */
export function compiledWords(config: string): WordFilter {
  let filter = compiled.get(config);
  if (filter === undefined) {
    filter = compileWords(JSON.parse(config) as ModuleConfig<'word_filter'>);
    compiled.set(config, filter);
  }
  return filter;
}
