import type { Queryable, Row } from '../engines/postgres/port';
import { Collector } from '../kernel/collector';

/** A statement about one credential, written so that many of them can be asked about in one. */
export interface Question<Asked extends object, Found> {
  /** Of the prepared statement. */
  readonly name: string;
  /** The members of what is asked that the statement takes, in the order of its parameters, with their types. */
  readonly takes: { readonly [Member in keyof Asked]?: 'uuid' | 'text' | 'float8' };
  /** Selects one row at most. `of` holds what stands for each member: a parameter, or a column. */
  sql(of: { readonly [Member in keyof Asked]: string }): string;
  /** What the row, or there being none, comes to. */
  found(row: Row | undefined, asked: Asked): Found;
}

/** Asks a question; rejects when the database cannot say. */
export type Ask = <Asked extends object, Found>(question: Question<Asked, Found>, asked: Asked) => Promise<Found>;

/** Each question is a statement of its own. */
export const askAlone =
  (db: Queryable): Ask =>
  async (question, asked) => {
    const members = membersOf(question);
    const places = members.map((member, index) => [member, `$${index + 1}`]);
    const values = members.map((member) => asked[member]);
    const [row] = await db.query(question.sql(Object.fromEntries(places)), values, question.name);
    return question.found(row, asked);
  };

/** Beyond this many the next statement follows. */
const TOGETHER = 500;

/** A question, whatever it asks and finds. */
interface Asking {
  question: Question<object, unknown>;
  asked: object;
}

/**
 * What is asked in one turn of the event loop, or while a statement is under way, is asked in one statement of up to
 * 500, whatever the questions are.
 */
export function askTogether(db: Queryable): Ask {
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

/** Where a mixture fails, each question is asked by itself: one read model that is being built stops no other. */
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
  if (first !== undefined && others.length === 0) return [await askAlone(db)(first.question, first.asked)];
  const recordsets = questions.map((question) =>
    JSON.stringify(group.flatMap((one, place) => (one.question === question ? [{ ...one.asked, place }] : []))),
  );
  // A mixture is planned each time: there are too many of them to prepare.
  const name = questions.length === 1 ? `${questions[0]!.name}-together` : undefined;
  const rows = await db.query(questions.map(selectOfMany).join('\nunion all\n'), recordsets, name);
  const found = new Map<number, Row>(rows.map(({ place, row }) => [place, row]));
  return group.map(({ question, asked }, place) => question.found(found.get(place), asked));
}

/** The rows of all recordset entries that have one, each with its entry's place. */
function selectOfMany(question: Asking['question'], index: number): string {
  const members = membersOf(question);
  const columns = members.map((member) => `${member} ${question.takes[member]}`);
  const of = Object.fromEntries(members.map((member) => [member, `q.${member}`]));
  return `select q.place, to_jsonb(f) as row
    from jsonb_to_recordset($${index + 1}::jsonb) q (place int, ${columns.join(', ')})
    cross join lateral (${question.sql(of)}) f`;
}

const membersOf = <Asked extends object>({ takes }: Question<Asked, unknown>) => Object.keys(takes) as (keyof Asked)[];
