-- version 1
-- The shard of a channel by its name, bit for bit as lib/hash/shards.ts has it (Kafka's murmur2), for builds before,
-- which do not say it.
create or replace function outbox_shard(p_channel text) returns int
language plpgsql immutable strict parallel safe as $body$
declare
  uuid constant text := ':([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$';
  key  bytea := convert_to(coalesce(substring(p_channel from uuid), p_channel), 'UTF8');
  m    constant bigint := 1540483477;
  low  constant bigint := 4294967295;
  size int := length(key);
  hash bigint := (2538058380 # size) & low;
  word bigint;
  i    int := 0;
begin
  while i + 4 <= size loop
    word := get_byte(key, i) + (get_byte(key, i + 1) << 8) + (get_byte(key, i + 2) << 16)
      + (get_byte(key, i + 3)::bigint << 24);
    word := (word * m) & low;
    word := ((word # (word >> 24)) * m) & low;
    hash := ((hash * m) & low) # word;
    i := i + 4;
  end loop;
  if size - i = 3 then hash := hash # (get_byte(key, i + 2)::bigint << 16); end if;
  if size - i >= 2 then hash := hash # (get_byte(key, i + 1)::bigint << 8); end if;
  if size - i >= 1 then hash := ((hash # get_byte(key, i)) * m) & low; end if;
  hash := ((hash # (hash >> 13)) * m) & low;
  hash := hash # (hash >> 15);
  return (hash & 2147483647) % 64;
end
$body$;
