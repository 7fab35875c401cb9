/**
 * One thing for each topic, made when it is first asked for; a failure is forgotten, and the next call makes it anew.
 */
export class PerTopic<One extends object> {
  private readonly made = new Map<string, One>();
  private readonly making = new Map<string, Promise<One>>();

  constructor(private readonly make: (topic: string) => Promise<One>) {}

  /** At once for a known topic; all who ask for one that is being made wait for the same promise, in their order. */
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
    // Kept until those that wait for it had their turn.
    const opened = () => void setImmediate(() => this.making.delete(topic));
    opening.then(opened, opened);
    return opening;
  }
}
