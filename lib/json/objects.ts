const QUOTE = 34;
const BACKSLASH = 92;
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [123, 125, 91, 93];

/** An object that is longer than it may be. */
export class ObjectTooLong extends Error {
  override readonly name = 'ObjectTooLong';
}

/**
 * The objects of a JSON text that comes piece by piece, each as it was written: of a list that never ends, of lines, or
 * of server-sent events. What stands between them is passed over.
 */
export class JsonObjects {
  private text = '';
  /** Where the next look begins. */
  private at = 0;
  private start = -1;
  private depth = 0;
  private in_string = false;

  /** @param longest most characters of one object, which are all that is ever kept */
  constructor(private readonly longest: number) {}

  /** The objects that this piece completes. @throws ObjectTooLong */
  push(piece: string): string[] {
    this.text += piece;
    const whole: string[] = [];
    for (; this.at < this.text.length; this.at += 1) {
      const code = this.text.charCodeAt(this.at);
      if (this.in_string) {
        // The escaped character may be in the next piece: then the backslash is read again.
        if (code === BACKSLASH) {
          if (this.at + 1 >= this.text.length) break;
          this.at += 1;
        } else if (code === QUOTE) this.in_string = false;
      } else if (code === QUOTE) this.in_string = this.depth > 0;
      else if (code === OPEN || (code === OPEN_LIST && this.depth > 0)) {
        if (this.depth === 0) this.start = this.at;
        this.depth += 1;
      } else if ((code === CLOSE || code === CLOSE_LIST) && this.depth > 0) {
        this.depth -= 1;
        if (this.depth === 0) whole.push(this.text.slice(this.start, this.at + 1));
      }
    }
    const kept_from = this.depth > 0 ? this.start : this.at;
    this.text = this.text.slice(kept_from);
    this.at -= kept_from;
    this.start = 0;
    if (this.text.length > this.longest) throw new ObjectTooLong(`an object of more than ${this.longest} characters`);
    return whole;
  }
}

/** The objects of the list that begins at `from`, each as it was written. Only for text that parses. */
export function objectsOfList(json: string, from: number): string[] {
  const objects: string[] = [];
  let [depth, start, in_string] = [0, 0, false];
  for (let at = json.indexOf('[', from); at >= 0 && at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (in_string) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) in_string = false;
    } else if (code === QUOTE) in_string = true;
    else if (code === OPEN || code === OPEN_LIST) {
      depth += 1;
      if (depth === 2 && code === OPEN) start = at;
    } else if (code === CLOSE || code === CLOSE_LIST) {
      depth -= 1;
      if (depth === 1 && code === CLOSE) objects.push(json.slice(start, at + 1));
      if (depth === 0) return objects;
    }
  }
  return objects;
}
