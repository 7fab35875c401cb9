/** Where more have come or gone, all are sent the list: it is twice as long at most, and a queue holds 256 messages. */
const MAX_INDIVIDUAL_CHANGES = 250;
/** Characters of all single changes together: about those of a list with common names and addresses. */
const TOLD_LENGTH = 150_000;

/** Pending changes for the subscribers of a room: each join and leave, or the fact that there were too many. */
export class PresenceDelta {
  private texts: string[] = [];
  private length = 0;
  private overflowed = false;

  get empty(): boolean {
    return !this.overflowed && this.texts.length === 0;
  }

  /** True for more changes than are sent singly: then the list is sent. */
  get many(): boolean {
    return this.overflowed;
  }

  add(text: string): void {
    if (this.overflowed) return;
    this.length += text.length;
    this.texts.push(text);
    if (this.texts.length <= MAX_INDIVIDUAL_CHANGES && this.length <= TOLD_LENGTH) return;
    this.take();
    this.overflowed = true;
  }

  /** Returns the single changes and clears them. */
  take(): readonly string[] {
    const { texts } = this;
    [this.texts, this.length, this.overflowed] = [[], 0, false];
    return texts;
  }
}
