import pg from 'pg';
import type { EncodedWrite } from '../checks';

/** Outcome of a write. */
export interface OutcomeRow {
  write_no: number;
  status: 0 | 1 | 2 | 3;
  revision: number;
  at_position: string | null;
}

/** append_domain_events for one event, at half the cost: `(0,12,345)` is status, revision, position or nothing. */
const APPEND_ONE = 'select append_domain_event($1, $2, $3, $4, $5, $6) as outcome';

/**
 * Stores an append of one event. Reads the answer as one text, because the driver's own way, which copies the
 * statement's settings property by property and makes a row of named columns, takes longer than all else here.
 */
export function appendOne(
  pool: pg.Pool,
  [{ stream, expected, ids, types, data }]: readonly [EncodedWrite],
  metadata: string,
  query_timeout: number,
): Promise<OutcomeRow> {
  const append = new AppendOne([stream, expected, ids[0]!, types[0]!, data[0]!, metadata], query_timeout);
  return new Promise((resolve, reject) => {
    // The driver's types do not allow a custom query here.
    pool.query(append as unknown as string, (error: Error | undefined) =>
      error ? reject(error) : resolve(outcomeOf(append.answer)),
    );
  });
}

class AppendOne extends pg.Query {
  readonly name = 'append-domain-event';
  answer = '';

  constructor(
    readonly values: readonly (string | number)[],
    /** Milliseconds; the driver reads it. */
    readonly query_timeout: number,
  ) {
    super(APPEND_ONE);
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { fields: [string] }): void {
    this.answer = fields[0];
  }

  handleCommandComplete(): void {}
}

function outcomeOf(answer: string): OutcomeRow {
  const [status, revision, at_position] = answer.slice(1, -1).split(',');
  return {
    write_no: 1,
    status: Number(status) as OutcomeRow['status'],
    revision: Number(revision),
    at_position: at_position || null,
  };
}
