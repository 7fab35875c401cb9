import { handle } from '../access/handle';
import { asOperator, type AdminServices } from '../cli/admin/operator';
import type { Decider, DomainEvent } from '../kernel/decider';
import { DomainError } from '../kernel/errors';

interface Step<S, C, E extends DomainEvent> {
  decider: Decider<S, C, E>;
  stream: string;
  command: C;
  /** The refusals that say that the step was taken before. */
  done: readonly string[];
}

/** Takes a step of the demo's set-up or removal unless it was taken before; any other refusal is thrown. */
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
