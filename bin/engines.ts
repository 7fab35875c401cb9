import { type Engines, openEngines as open, type OpenOptions } from '../engines/engines';
import { EVENTS, UPCASTERS } from './areas';
import { VERSION } from './version';

/** Opens the engines of the settings for the areas of this release. */
export const openEngines = (options: OpenOptions): Promise<Engines> =>
  open({ ...options, declared: EVENTS, upcasters: UPCASTERS, version: VERSION });
