import type { Labels } from './port';

/** Value of a metric for one combination of labels. */
export interface Series<Value> {
  labels: Labels;
  value: Value;
}

type Branch<Value> = Map<string | undefined, Branch<Value> | Series<Value>>;

/** Values of a metric by its labels, in nested maps, because one text of all labels would be hashed on each call. */
export class SeriesOf<Value> {
  /** In the order of their first use. */
  readonly all: Series<Value>[] = [];
  private readonly root: Branch<Value> = new Map();

  constructor(
    private readonly names: readonly string[],
    private readonly make: () => Value,
  ) {
    if (names.length === 0) this.add({});
  }

  /** Returns or creates a series; labels may be omitted. @throws Error for a label that the metric does not have */
  of(labels: Labels): Series<Value> {
    const { names } = this;
    this.check(labels);
    let at: Branch<Value> | Series<Value> | undefined = names.length === 0 ? this.all[0] : this.root;
    for (let n = 0; n < names.length && at !== undefined; n += 1) at = (at as Branch<Value>).get(labels[names[n]!]);
    return (at as Series<Value> | undefined) ?? this.add(labels);
  }

  private check(labels: Labels): void {
    for (const name in labels) {
      if (!this.names.includes(name)) throw new Error(`label ${name} is none of ${this.names.join(', ')}`);
    }
  }

  private add(labels: Labels): Series<Value> {
    const series = { labels: { ...labels }, value: this.make() };
    this.all.push(series);
    let branch = this.root;
    for (const [n, name] of this.names.entries()) {
      const value = labels[name];
      if (n === this.names.length - 1) branch.set(value, series);
      else {
        const next = (branch.get(value) as Branch<Value> | undefined) ?? new Map();
        branch.set(value, next);
        branch = next;
      }
    }
    return series;
  }
}
