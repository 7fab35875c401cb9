import type { Eraser } from '../kernel/eraser';

/**
 * Nothing is left to do here once the keys are gone: personal values lie sealed as their events have them, names of
 * actors come from the profiles, and rows and hashes stay what a rebuild makes of the events.
 */
export const auditLogEraser: Eraser = {
  tables: ['audit_log', 'audit_log_heads', 'audit_log_targets'],
  erase: async () => null,
};
