/**
 * Days for which counts of deleted rows are kept. Sessions that began earlier are never counted again: their figures
 * stay as they are, whatever arrives late.
 */
export const KEPT_COUNT_DAYS = 400;
