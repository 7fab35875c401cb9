import type { ErasureServices, Eraser, Person } from '../../kernel/eraser';
import { eraseSubject, type ErasureDeps } from './erasure';
import { isKnown, noteSubject, type KnownPersonDeps } from './known-person';

/** Dependencies of erasing a user of this installation. */
export type UserErasureDeps = AreaErasureDeps & Pick<ErasureDeps, 'destroyKeys'>;

type AreaErasureDeps = ErasureServices & { erasers: readonly Eraser[] };

export type PersonErasureDeps = Omit<ErasureDeps, 'erasers'> & UserErasureDeps & KnownPersonDeps;

/**
 * Erases a person everywhere: destroys their keys, then erases what read models, messages and areas store unencrypted.
 * Idempotent. Source: design §5.
 * @returns descriptions of the work, from each area; empty when nothing was left to erase
 * @throws Error when nothing is stored about the person; otherwise as {@link eraseSubject}; then it must be repeated
 */
export async function erasePerson(deps: PersonErasureDeps, person: Person): Promise<string[]> {
  deps.onProgress?.({ done: 0, total: 0, what: 'searching for the person' });
  if (!(await isKnown(deps, person))) throw new Error(`nothing is stored about ${person.subject}: check the id`);
  // The note comes first: a run that is repeated after an interruption finds it.
  await noteSubject(deps, person.subject);
  if (person.kind === 'user') return eraseUser(deps, person.id);
  const erased = await eraseSubject({ ...deps, erasers: deps.record_erasers }, person.subject);
  const { keys, records, rows, messages } = erased;
  const counts = [`${keys} keys destroyed`, `${records} records`, `${rows} rows and ${messages} messages erased`];
  const areas = await eraseFromAreas(deps, person);
  return keys + records + rows + messages > 0 ? [...counts, ...areas] : areas;
}

/** Erases a user, as `lumio erase user:<id>` does. Skips records, because no vendor's record is about a user id. */
export async function eraseUser(deps: UserErasureDeps, id: string): Promise<string[]> {
  const person = { subject: `user:${id}`, kind: 'user', id };
  const keys = await deps.destroyKeys(person.subject);
  return [...(keys > 0 ? [`${keys} keys destroyed`] : []), ...(await eraseFromAreas(deps, person))];
}

/** Erases a person from the areas besides records. Returns descriptions of the work. */
export async function eraseFromAreas(deps: AreaErasureDeps, person: Person): Promise<string[]> {
  const done: string[] = [];
  for (const eraser of deps.erasers) {
    const outcome = await eraser.erase(person, deps);
    if (outcome !== null) done.push(outcome);
  }
  return done;
}
