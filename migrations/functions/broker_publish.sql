-- version 1
-- For processes of a build that does not know broker_append: the same without an answer.
create or replace function broker_publish(
  p_topic_id int, p_data bytea,
  p_partition int[], p_rank int[], p_start int[], p_key int[], p_headers int[], p_value int[],
  p_partitions int[], p_counts int[]
) returns void
language sql volatile
as 'select from broker_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)';
