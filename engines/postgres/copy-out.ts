import pg from 'pg';

/** Row of a COPY: the bytes of each column as PostgreSQL sends them, null for NULL. */
export type CopiedRow = (Buffer | null)[];

/** Header of the format: a signature of 11 bytes, flags, and the length of the header extension. */
const HEAD_BYTES = 11 + 4 + 4;
/** Column count that marks the end of the rows. */
const END = -1;

/**
 * Rows of `query` as raw bytes, by COPY in the binary format, because the driver reads every other result as text,
 * where bytes take a third more space and their encoding more time than the read. COPY takes no parameters.
 */
export function copyOut(pool: pg.Pool, query: string, query_timeout: number): Promise<CopiedRow[]> {
  return new Promise((resolve, reject) => {
    const copy = new CopyOut(`copy (${query}) to stdout (format binary)`, query_timeout);
    // The driver's types do not allow a custom query here.
    pool.query(copy as unknown as string, (error: Error | undefined) => (error ? reject(error) : resolve(copy.copied)));
  });
}

class CopyOut extends pg.Query {
  readonly copied: CopiedRow[] = [];
  private begun = false;

  constructor(
    private readonly statement: string,
    /** Milliseconds; the driver reads it. */
    readonly query_timeout: number,
  ) {
    super({ text: statement });
  }

  override submit = (connection: pg.Connection): void => connection.query(this.statement);

  /** The server sends each row as one message, the first one behind the format's head. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    // Copies, because the driver reuses the memory for the next message.
    const message = Buffer.from(chunk);
    let at = 0;
    if (!this.begun) {
      this.begun = true;
      at = HEAD_BYTES + message.readInt32BE(HEAD_BYTES - 4);
      if (at === message.length) return;
    }
    const columns = message.readInt16BE(at);
    if (columns === END) return;
    at += 2;
    const row: CopiedRow = [];
    for (let column = 0; column < columns; column += 1) {
      const length = message.readInt32BE(at);
      at += 4;
      row.push(length < 0 ? null : message.subarray(at, at + length));
      at += Math.max(0, length);
    }
    this.copied.push(row);
  }
}
