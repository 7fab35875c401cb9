import type { Eraser } from '../maintenance/erasure';
import { eventLogEraser } from '../maintenance/event-log-erasure';

/** What every read model over a topic of records does when a person is erased; a new area adds its own here. */
export const ERASERS: readonly Eraser[] = [eventLogEraser];
