import { Kind, visit, type FieldNode } from 'graphql';
import { jsonRefusals, MAX_JSON_DEPTH } from '../../http/requests/json-rules';

const composed = new WeakMap<FieldNode, boolean>();

/**
 * Refuses arguments that are nested too deeply once their variables are inserted: literals were checked with the
 * document and the values of variables with the body, each for itself.
 * @throws ApiError BAD_REQUEST
 */
export function refuseDepth(field: FieldNode, values: Readonly<Record<string, unknown>>): void {
  let inside = composed.get(field);
  if (inside === undefined) composed.set(field, (inside = hasVariableInside(field)));
  if (inside && Object.values(values).some((value) => isDeeperThan(value, MAX_JSON_DEPTH))) throw jsonRefusals.depth();
}

/** Whether a variable stands inside a list or an object of an argument. */
function hasVariableInside({ arguments: given }: FieldNode): boolean {
  let found = false;
  for (const { value } of given ?? []) {
    if (value.kind === Kind.VARIABLE) continue;
    visit(value, { [Kind.VARIABLE]: () => void (found = true) });
  }
  return found;
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
