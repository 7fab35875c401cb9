import pg from 'pg';

/** Statements that take their data so: `query` gets it, in the format's binary form, as the one value. */
const COPY = /^copy .* from stdin \(format binary\)$/s;
const COPY_DATA = 'd'.charCodeAt(0);
/** CopyDone: its letter, and its length without that. */
const DONE = Buffer.from('c\0\0\0\x04', 'latin1');

export const isCopyIn = (text: string): boolean => COPY.test(text);

/**
 * A COPY FROM STDIN whose data leaves with the statement: where the server refuses the statement it passes over the
 * data, so that other statements may follow at once, also on a pipelined connection.
 */
export class CopyIn extends pg.Query {
  constructor(
    private readonly statement: string,
    private readonly data: Buffer,
    /** Milliseconds; the driver reads it. */
    readonly query_timeout: number | undefined,
  ) {
    super({ text: statement });
  }

  override submit = (connection: pg.Connection): void => {
    const { stream } = connection;
    // As the driver would, which copies the data twice.
    const head = Buffer.alloc(5, COPY_DATA);
    head.writeInt32BE(4 + this.data.length, 1);
    stream.cork();
    connection.query(this.statement);
    stream.write(head);
    stream.write(this.data);
    stream.write(DONE);
    stream.uncork();
  };

  /** The data is on its way. */
  handleCopyInResponse(): void {}
}
