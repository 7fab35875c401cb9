/** Signature of the format, flags, and an empty header extension. */
const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const END = -1;
const NULL = -1;
/** Microseconds from 1970 to 2000, where PostgreSQL counts from. */
const EPOCH_MICROS = 946_684_800_000_000;
/** Positions of the two digits of each byte in the text of a UUID. */
const UUID_BYTES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const DIGITS = new Uint8Array(128);
for (const [value, digit] of [...'0123456789abcdef'].entries()) DIGITS[digit.charCodeAt(0)] = value;

/**
 * Builds rows in the binary form of COPY, which spares the server the parsing of numbers and times from text, most of
 * the cost of writing a row. `row` begins a row; its columns follow in their order.
 */
export class BinaryRows {
  private out: Buffer;
  private at: number;

  constructor(
    private readonly columns: number,
    bytes = 64 * 1024,
  ) {
    this.out = Buffer.allocUnsafe(Math.max(bytes, HEAD.length + 2));
    this.at = HEAD.copy(this.out);
  }

  row(): void {
    this.room(2);
    this.at = this.out.writeInt16BE(this.columns, this.at);
  }

  /** Adds a value of `text`, `json` and similar types. */
  text(value: string | null): void {
    if (value === null) return this.null();
    // A UTF-16 unit has at most three bytes in UTF-8.
    this.room(4 + 3 * value.length);
    const bytes = this.out.write(value, this.at + 4);
    this.out.writeInt32BE(bytes, this.at);
    this.at += 4 + bytes;
  }

  /** Adds a UUID in the form of `lib/hash/uuid.ts`. */
  uuid(value: string): void {
    this.room(20);
    this.at = this.out.writeInt32BE(16, this.at);
    for (const place of UUID_BYTES) {
      this.out[this.at] = (DIGITS[value.charCodeAt(place)]! << 4) | DIGITS[value.charCodeAt(place + 1)]!;
      this.at += 1;
    }
  }

  /** Adds a `timestamptz` by its microseconds since 1970. */
  instant(micros: number): void {
    this.bigint(micros - EPOCH_MICROS);
  }

  /** Adds a `bigint`, of a number that a double holds exactly. */
  bigint(value: number): void {
    this.room(12);
    const high = Math.floor(value / 0x1_0000_0000);
    this.at = this.out.writeInt32BE(8, this.at);
    this.at = this.out.writeInt32BE(high, this.at);
    this.at = this.out.writeUInt32BE(value - high * 0x1_0000_0000, this.at);
  }

  boolean(value: boolean): void {
    this.room(5);
    this.at = this.out.writeInt32BE(1, this.at);
    this.at = this.out.writeUInt8(value ? 1 : 0, this.at);
  }

  /** Adds SQL's null, whatever the column's type. */
  null(): void {
    this.room(4);
    this.at = this.out.writeInt32BE(NULL, this.at);
  }

  /** Returns all rows; no further call is allowed. */
  end(): Buffer {
    this.room(2);
    this.at = this.out.writeInt16BE(END, this.at);
    return this.out.subarray(0, this.at);
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.out.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.at + bytes, 2 * this.out.length));
    this.out.copy(larger, 0, 0, this.at);
    this.out = larger;
  }
}
