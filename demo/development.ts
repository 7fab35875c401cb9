import type { Services } from '../access/services';
import type { SubjectKeys } from '../engines/subject-keys/port';
import { NotBuilt } from '../kernel/errors';
import { retry } from '../kernel/retry';
import type { Stops } from '../kernel/stops';
import { type DevCredentialsDeps, keepDevCredentials } from './credentials';
import { ensureDemoData } from './data';

export interface DevelopmentDeps extends Omit<DevCredentialsDeps, 'demo' | 'services'> {
  services: Services;
  subject_keys: SubjectKeys;
}

/**
 * What development adds to a process that serves: demo data, and the file with credentials for all of it, which is kept
 * true until `stops`. Answers with the access token of the demo's owner.
 */
export async function addDevelopment(deps: DevelopmentDeps, stops: Stops): Promise<string> {
  const { services, subject_keys } = deps;
  const demo = await onceBuilt(() => ensureDemoData({ ...services, subject_keys }));
  const credentials = await onceBuilt(() => keepDevCredentials({ ...deps, demo }));
  stops.add(() => credentials.stop());
  return credentials.access_token;
}

/** Read models are built by a process with the projector's role, which may start after this one. */
const onceBuilt = <T>(work: () => Promise<T>): Promise<T> =>
  retry(work, { first_ms: 100, most_ms: 1000, within_ms: 60_000, passing: (error) => error instanceof NotBuilt });
