/** Number of rows with each key, with the first of them, in the order of their first rows. */
export function tally<T>(rows: readonly T[], keyOf: (row: T) => string): { row: T; count: number }[] {
  const counts = new Map<string, { row: T; count: number }>();
  for (const row of rows) {
    const key = keyOf(row);
    const counted = counts.get(key);
    if (counted) counted.count += 1;
    else counts.set(key, { row, count: 1 });
  }
  return [...counts.values()];
}
