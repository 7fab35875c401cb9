import type { Labels } from './port';

/** What one combination of labels has. */
export interface Series<Value> {
  labels: Labels;
  value: Value;
}

type Branch<Value> = Map<string | undefined, Branch<Value> | Series<Value>>;

/** The values of a metric by its labels, found label by label: a text made of all of them would be hashed each time. */
export class SeriesOf<Value> {
  /** In the order in which they came. */
  readonly all: Series<Value>[] = [];
  private readonly root: Branch<Value> = new Map();

  constructor(
    private readonly names: readonly string[],
    private readonly make: () => Value,
  ) {
    if (names.length === 0) this.add({});
  }

  /** Made when it is first asked for; labels may be left out. @throws Error for one that the metric does not have */
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
