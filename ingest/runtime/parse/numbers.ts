/** A count from a number or a text; null for anything else. */
export function wholeOf(value: string | number | null | undefined): number | null {
  const count = value === null || value === undefined || value === '' ? Number.NaN : Number(value);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}
