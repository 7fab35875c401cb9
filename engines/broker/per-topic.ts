/**
 * Values by topic, each made on its first request; after a failure the next call makes the value again.
 */
export class PerTopic<One extends object> {
  private readonly made = new Map<string, One>();
  private readonly making = new Map<string, Promise<One>>();

  constructor(private readonly make: (topic: string) => Promise<One>) {}

  /** Returns a known value at once; callers of a value in the making share one promise and resume in their order. */
  get(topic: string): One | Promise<One> {
    return this.making.get(topic) ?? this.made.get(topic) ?? this.open(topic);
  }

  values(): Iterable<One> {
    return this.made.values();
  }

  private open(topic: string): Promise<One> {
    const opening = this.make(topic).then((one) => {
      this.made.set(topic, one);
      return one;
    });
    this.making.set(topic, opening);
    // Keep the promise until its waiters have resumed, so that they keep their order.
    const opened = () => void setImmediate(() => this.making.delete(topic));
    opening.then(opened, opened);
    return opening;
  }
}
