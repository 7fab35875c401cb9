import type { Json } from '../../lib/json/json';

/** Ids of files that layers draw or play. */
export interface DrawnFiles {
  uploads: ReadonlySet<string>;
  sounds: ReadonlySet<string>;
}

/** The files that settings of layers name: `upload_id` and `sound_id`, also in alerts and their variations. */
export function filesIn(configs: readonly Json[]): DrawnFiles {
  const files = { uploads: new Set<string>(), sounds: new Set<string>() };
  const look = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) return value.forEach(look);
    for (const [name, member] of Object.entries(value)) {
      if (typeof member !== 'string') look(member);
      else if (name === 'upload_id') files.uploads.add(member);
      else if (name === 'sound_id') files.sounds.add(member);
    }
  };
  configs.forEach(look);
  return files;
}
