import { handle } from '../app/write-path/command-handler';
import { asOperator, type AdminServices } from '../cli/admin/shared/operator';
import type { Decider, DomainEvent } from '../kernel/decider';
import { DomainError } from '../kernel/errors';

interface Step<S, C, E extends DomainEvent> {
  decider: Decider<S, C, E>;
  stream: string;
  command: C;
  /** Refusals that mean an earlier call has done the step. */
  done: readonly string[];
}

/** Runs a step of the demo's set-up or removal; ignores the refusals in `done` and throws others. */
export async function step<S, C, E extends DomainEvent>(
  services: AdminServices,
  { done, ...request }: Step<S, C, E>,
): Promise<void> {
  try {
    await handle(asOperator('demo-data'), services, request);
  } catch (error) {
    if (!(error instanceof DomainError) || !done.includes(error.reason)) throw error;
  }
}
