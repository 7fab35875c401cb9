/** Where more have come or gone, all are sent the list: it is twice as long at most, and a queue holds 256 messages. */
const TOLD_EACH = 250;
/** Characters of what is told of each: about as many as a list of common names and addresses has. */
const TOLD_LENGTH = 150_000;

/** What is to be told to the subscribers of a room: each who has come or gone, or that there were too many for that. */
export class PresenceNews {
  private texts: string[] = [];
  private length = 0;
  private crowd = false;

  get empty(): boolean {
    return !this.crowd && this.texts.length === 0;
  }

  /** More than is told of each: what is told is the list. */
  get many(): boolean {
    return this.crowd;
  }

  add(text: string): void {
    if (this.crowd) return;
    this.length += text.length;
    this.texts.push(text);
    if (this.texts.length <= TOLD_EACH && this.length <= TOLD_LENGTH) return;
    this.take();
    this.crowd = true;
  }

  /** What is told of each; nothing is to be told from then on. */
  take(): readonly string[] {
    const { texts } = this;
    [this.texts, this.length, this.crowd] = [[], 0, false];
    return texts;
  }
}
