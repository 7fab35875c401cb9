import pg from 'pg';

/** Statements whose only value is the data of a COPY, in the binary format. */
const COPY = /^copy .* from stdin \(format binary\)$/s;
const COPY_DATA = 'd'.charCodeAt(0);
/** CopyDone: its letter, and its length without the letter. */
const DONE = Buffer.from('c\0\0\0\x04', 'latin1');

export const isCopyIn = (text: string): boolean => COPY.test(text);

/**
 * A COPY FROM STDIN whose data is sent with the statement: when the server refuses the statement it skips the data, so
 * that other statements may follow at once, also on a pipelined connection.
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
    // Same bytes as the driver's own, which copies the data twice.
    const head = Buffer.alloc(5, COPY_DATA);
    head.writeInt32BE(4 + this.data.length, 1);
    stream.cork();
    connection.query(this.statement);
    stream.write(head);
    stream.write(this.data);
    stream.write(DONE);
    stream.uncork();
  };

  /** Ignored, because the data is sent already. */
  handleCopyInResponse(): void {}
}
