import type { Services } from '../app/services';
import type { SubjectKeys } from '../privacy/subject-keys/port';
import { NotBuilt } from '../kernel/errors';
import { retry } from '../lib/async/retry';
import type { ShutdownStack } from '../lib/async/shutdown-stack';
import { type DevCredentialsDeps, keepDevCredentials } from './credentials';
import { ensureDemoData } from './data';

export interface DevelopmentDeps extends Omit<DevCredentialsDeps, 'demo' | 'services'> {
  services: Services;
  subject_keys: SubjectKeys;
}

/**
 * Adds demo data to a serving process of development, and the file with its credentials, maintained until `stops`.
 * Returns the access token of the demo's owner.
 */
export async function addDevelopment(deps: DevelopmentDeps, stops: ShutdownStack): Promise<string> {
  const { services, subject_keys } = deps;
  const demo = await onceBuilt(() => ensureDemoData({ ...services, subject_keys }));
  const credentials = await onceBuilt(() => keepDevCredentials({ ...deps, demo }));
  stops.add(() => credentials.stop());
  return credentials.access_token;
}

/** Retries until the read models are built, by a process with the projector's role that may start after this one. */
const onceBuilt = <T>(work: () => Promise<T>): Promise<T> =>
  retry(work, { first_ms: 100, most_ms: 1000, within_ms: 60_000, passing: (error) => error instanceof NotBuilt });
