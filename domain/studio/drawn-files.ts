import { CUSTOM_CODE } from './widget-types';
import type { Json } from '../../lib/json/json';

/** Ids of files that layers draw or play, as the settings write them. */
export interface DrawnFiles {
  uploads: ReadonlySet<string>;
  sounds: ReadonlySet<string>;
}

const CODE: ReadonlySet<string> = new Set(CUSTOM_CODE);
/** Addresses of files in the code of a custom layer. */
const ADDRESS = /\/v1\/(uploads|sounds)\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/(?:content|stream)/gi;

/**
 * The files that settings of layers name: `upload_id` and `sound_id`, also in alerts and their variations, and the
 * addresses in code.
 */
export function filesIn(configs: readonly Json[]): DrawnFiles {
  const files = { uploads: new Set<string>(), sounds: new Set<string>() };
  const look = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) return value.forEach(look);
    for (const [name, member] of Object.entries(value)) {
      if (typeof member !== 'string') look(member);
      else if (name === 'upload_id') files.uploads.add(member);
      else if (name === 'sound_id') files.sounds.add(member);
      else if (CODE.has(name)) {
        for (const [, kind, id] of member.matchAll(ADDRESS))
          files[kind!.toLowerCase() as keyof DrawnFiles].add(id!.toLowerCase());
      }
    }
  };
  configs.forEach(look);
  return files;
}
