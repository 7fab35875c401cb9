-- version 1
-- Every run of one to three characters that a text holds, in lower case: a text that holds another one holds all of its
-- pieces. The longest ones alone are enough to look for it by. Indexes keep what this answered, so it is never changed:
-- other pieces are a function of another name.
create or replace function text_pieces(p_text text, p_longest boolean default false) returns text[]
language plpgsql immutable strict parallel safe cost 1000
as $pieces$
declare
  c text[] := string_to_array(lower(p_text), null);
  n int := cardinality(c);
  least_size int := case when p_longest then least(n, 3) else 1 end;
  pieces text[] := case when least_size = 1 then c end;
  pair text;
begin
  for i in 1 .. n - 1 loop
    pair := c[i] || c[i + 1];
    if least_size < 3 then pieces := pieces || pair; end if;
    if i < n - 1 then pieces := pieces || (pair || c[i + 2]); end if;
  end loop;
  return coalesce(pieces, '{}');
end;
$pieces$;
