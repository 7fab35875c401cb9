import type { Eraser } from '../projections/erasure';
import { eventLogEraser } from '../projections/event-log-erasure';

/** What every read model over a topic of records does when a person is erased; a new area adds its own here. */
export const ERASERS: readonly Eraser[] = [eventLogEraser];
