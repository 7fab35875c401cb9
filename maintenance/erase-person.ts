import type { ErasureServices, Eraser, Person } from '../kernel/eraser';
import { eraseSubject, type ErasureDeps } from './erasure';

export type PersonErasureDeps = Omit<ErasureDeps, 'erasers'> &
  ErasureServices & { db: ErasureDeps['db']; record_erasers: ErasureDeps['erasers']; erasers: readonly Eraser[] };

/**
 * Forgets a person everywhere: their keys first, then what read models, messages and areas keep in clear. Run twice it
 * does the same. Source: design §5.
 * @returns what was done, in the words of each area
 * @throws as {@link eraseSubject}; it must then be run again
 */
export async function erasePerson(deps: PersonErasureDeps, person: Person): Promise<string[]> {
  const { subject, kind } = person;
  const done: string[] = [];
  if (kind === 'user') {
    const keys = await deps.destroyKeys(subject);
    if (keys > 0) done.push(`${keys} keys destroyed`);
  } else {
    const erased = await eraseSubject({ ...deps, erasers: deps.record_erasers }, subject);
    done.push(
      `${erased.keys} keys destroyed`,
      `${erased.records} records`,
      `${erased.rows} rows and ${erased.messages} messages erased`,
    );
  }
  for (const eraser of deps.erasers) {
    const outcome = await eraser.erase(person, deps);
    if (outcome !== null) done.push(outcome);
  }
  return done;
}
