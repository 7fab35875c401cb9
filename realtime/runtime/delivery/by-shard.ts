import { SHARDS, shardOf } from '../../../lib/hash/shards';

/** Values by channel name; the names' shards are counted. */
export class ShardMap<Value> extends Map<string, Value> {
  /** Told when the first name of a shard comes, and when the last one goes. */
  onShard: (shard: number, wanted: boolean) => void = () => undefined;
  /** How many names each shard has. */
  private readonly shards = new Uint32Array(SHARDS);

  override set(name: string, value: Value): this {
    const known = this.has(name);
    super.set(name, value);
    const shard = shardOf(name);
    if (!known && this.shards[shard]!++ === 0) this.onShard(shard, true);
    return this;
  }

  override delete(name: string): boolean {
    if (!super.delete(name)) return false;
    const shard = shardOf(name);
    if (--this.shards[shard]! === 0) this.onShard(shard, false);
    return true;
  }

  override clear(): void {
    for (const name of [...this.keys()]) this.delete(name);
  }
}
