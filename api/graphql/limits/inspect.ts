import { BREAK, Kind, visit, type ASTNode, type DocumentNode } from 'graphql';
import type { ApiError } from '../../../kernel/errors';
import { isKeptExactly, isReservedMember, jsonRefusals, MAX_JSON_DEPTH } from '../../http/requests/json-rules';
import { pruneLocation } from './locations';

export interface Inspected {
  /** Number of nodes, from which the memory of the document is estimated. */
  nodes: number;
  /** The first value that is refused in JSON bodies as well, with the reason. */
  fault: { error: ApiError; node: ASTNode } | null;
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * Traverses a parsed document once: removes the parser's tokens and checks its values by the rules for JSON bodies.
 */
export function inspect(document: DocumentNode): Inspected {
  let nodes = 0;
  let depth = 0;
  let fault: Inspected['fault'] = null;
  visit(document, {
    enter(node) {
      nodes += 1;
      pruneLocation(node);
      if (node.kind === Kind.LIST || node.kind === Kind.OBJECT) depth += 1;
      const error = depth > MAX_JSON_DEPTH ? jsonRefusals.depth() : errorIn(node);
      if (!error) return undefined;
      fault = { error, node };
      return BREAK;
    },
    leave(node) {
      if (node.kind === Kind.LIST || node.kind === Kind.OBJECT) depth -= 1;
    },
  });
  return { nodes, fault };
}

function errorIn(node: ASTNode): ApiError | null {
  switch (node.kind) {
    case Kind.STRING:
      if (node.value.includes('\0')) return jsonRefusals.nul();
      return LONE_SURROGATE.test(node.value) ? jsonRefusals.lone_surrogate() : null;
    case Kind.INT:
    case Kind.FLOAT:
      return isKeptExactly(node.value, node.kind === Kind.INT) ? null : jsonRefusals.number();
    case Kind.OBJECT_FIELD:
      return isReservedMember(node.name.value) ? jsonRefusals.member_name(node.name.value) : null;
    case Kind.VARIABLE:
      // The values of variables are members of a JSON object, so that none can have such a name.
      return isReservedMember(node.name.value) ? jsonRefusals.member_name(node.name.value) : null;
    default:
      return null;
  }
}
