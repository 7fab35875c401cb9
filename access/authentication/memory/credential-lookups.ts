import type { Queryable, Row } from '../../../engines/postgres/port';
import { Collector } from '../../../lib/async/collector';

/** A statement about one credential that can be combined with many others into one. */
export interface CredentialLookup<Asked extends object, Found> {
  /** Name of the prepared statement. */
  readonly name: string;
  /** Members of `Asked` that the statement takes, in the order of its parameters, with their types. */
  readonly takes: { readonly [Member in keyof Asked]?: 'uuid' | 'text' | 'float8' };
  /** Selects one row at most. `of` has the SQL of each member: a parameter or a column. */
  sql(of: { readonly [Member in keyof Asked]: string }): string;
  /** Converts the row, or its absence, into the result. */
  found(row: Row | undefined, asked: Asked): Found;
}

/** Runs a look-up; rejects when the database fails. */
export type LookupRunner = <Asked extends object, Found>(
  question: CredentialLookup<Asked, Found>,
  asked: Asked,
) => Promise<Found>;

/** Runs each look-up as a statement of its own. */
export const runSingle =
  (db: Queryable): LookupRunner =>
  async (question, asked) => {
    const members = membersOf(question);
    const places = members.map((member, index) => [member, `$${index + 1}`]);
    const values = members.map((member) => asked[member]);
    const [row] = await db.query(question.sql(Object.fromEntries(places)), values, question.name);
    return question.found(row, asked);
  };

/** Maximum of look-ups per statement. */
const TOGETHER = 500;

/** A pending look-up. */
interface Asking {
  question: CredentialLookup<object, unknown>;
  asked: object;
}

/**
 * Combines the look-ups of one turn of the event loop, or of the time that a statement runs, into one statement of up
 * to 500, across different questions.
 */
export function batchLookups(db: Queryable): LookupRunner {
  const collector = new Collector<Asking, unknown>({
    take: (waiting) => {
      const group = waiting.slice(0, TOGETHER);
      return { count: group.length, group };
    },
    send: (group) => askAll(db, group),
  });
  return (question, asked) =>
    collector.add({ question: question as unknown as Asking['question'], asked }) as Promise<never>;
}

/**
 * Runs each question separately when the combined statement fails, so that a read model that is being built stops only
 * its own look-ups.
 */
async function askAll(db: Queryable, group: readonly Asking[]): Promise<unknown[]> {
  const questions = [...new Set(group.map(({ question }) => question))];
  try {
    return await askThese(db, questions, group);
  } catch (error) {
    if (questions.length === 1) throw error;
  }
  const outcomes: unknown[] = [];
  for (const question of questions) {
    const places = group.flatMap((one, place) => (one.question === question ? [place] : []));
    const found = await askThese(
      db,
      [question],
      places.map((place) => group[place]!),
    ).catch((error: Error) => error);
    places.forEach((place, at) => (outcomes[place] = found instanceof Error ? found : found[at]));
  }
  return outcomes;
}

async function askThese(db: Queryable, questions: Asking['question'][], group: readonly Asking[]): Promise<unknown[]> {
  const [first, ...others] = group;
  if (first !== undefined && others.length === 0) return [await runSingle(db)(first.question, first.asked)];
  const recordsets = questions.map((question) =>
    JSON.stringify(group.flatMap((one, place) => (one.question === question ? [{ ...one.asked, place }] : []))),
  );
  // Combined statements are not prepared, because there are too many combinations.
  const name = questions.length === 1 ? `${questions[0]!.name}-together` : undefined;
  const rows = await db.query(questions.map(selectOfMany).join('\nunion all\n'), recordsets, name);
  const found = new Map<number, Row>(rows.map(({ place, row }) => [place, row]));
  return group.map(({ question, asked }, place) => question.found(found.get(place), asked));
}

/** SQL: the rows of a question's recordset entries, each with its entry's position. */
function selectOfMany(question: Asking['question'], index: number): string {
  const members = membersOf(question);
  const columns = members.map((member) => `${member} ${question.takes[member]}`);
  const of = Object.fromEntries(members.map((member) => [member, `q.${member}`]));
  return `select q.place, to_jsonb(f) as row
    from jsonb_to_recordset($${index + 1}::jsonb) q (place int, ${columns.join(', ')})
    cross join lateral (${question.sql(of)}) f`;
}

const membersOf = <Asked extends object>({ takes }: CredentialLookup<Asked, unknown>) =>
  Object.keys(takes) as (keyof Asked)[];
