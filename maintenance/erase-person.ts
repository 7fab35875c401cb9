import type { ErasureServices, Eraser, Person } from '../kernel/eraser';
import { eraseSubject, type ErasureDeps } from './erasure';

/** What forgetting who logged in here needs. */
export type UserErasureDeps = ErasureServices & Pick<ErasureDeps, 'destroyKeys'> & { erasers: readonly Eraser[] };

export type PersonErasureDeps = Omit<ErasureDeps, 'erasers'> &
  UserErasureDeps & { db: ErasureDeps['db']; record_erasers: ErasureDeps['erasers'] };

/**
 * Forgets a person everywhere: their keys first, then what read models, messages and areas keep in clear. Run twice it
 * does the same. Source: design §5.
 * @returns what was done, in the words of each area
 * @throws as {@link eraseSubject}; it must then be run again
 */
export async function erasePerson(deps: PersonErasureDeps, person: Person): Promise<string[]> {
  if (person.kind === 'user') return eraseUser(deps, person.id);
  const erased = await eraseSubject({ ...deps, erasers: deps.record_erasers }, person.subject);
  return [
    `${erased.keys} keys destroyed`,
    `${erased.records} records`,
    `${erased.rows} rows and ${erased.messages} messages erased`,
    ...(await eraseFromAreas(deps, person)),
  ];
}

/** The same of who logged in here, as `lumio erase user:<id>` does: no record of a vendor's is about them. */
export async function eraseUser(deps: UserErasureDeps, id: string): Promise<string[]> {
  const person = { subject: `user:${id}`, kind: 'user', id };
  const keys = await deps.destroyKeys(person.subject);
  return [...(keys > 0 ? [`${keys} keys destroyed`] : []), ...(await eraseFromAreas(deps, person))];
}

async function eraseFromAreas(deps: UserErasureDeps, person: Person): Promise<string[]> {
  const done: string[] = [];
  for (const eraser of deps.erasers) {
    const outcome = await eraser.erase(person, deps);
    if (outcome !== null) done.push(outcome);
  }
  return done;
}
