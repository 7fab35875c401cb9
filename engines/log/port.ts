/** Structured log: facts first, then the line a person reads. Never a token, secret or payload. */
export interface Logger {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  child(facts: object): Logger;
}
