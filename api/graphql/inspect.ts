import { BREAK, Kind, visit, type ASTNode, type DocumentNode } from 'graphql';
import type { ApiError } from '../../kernel/errors';
import { isKeptExactly, isReservedMember, jsonRefusals, MAX_JSON_DEPTH } from '../json-rules';
import { keepPlace } from './places';

export interface Inspected {
  /** Nodes of the document: what it takes in memory follows from them. */
  nodes: number;
  /** The first value that a JSON body could not hold either, and why. */
  fault: { error: ApiError; node: ASTNode } | null;
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * Goes once over a parsed document: frees it of the parser's tokens and holds its values against the rules for JSON
 * bodies.
 */
export function inspect(document: DocumentNode): Inspected {
  let nodes = 0;
  let depth = 0;
  let fault: Inspected['fault'] = null;
  visit(document, {
    enter(node) {
      nodes += 1;
      keepPlace(node);
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
      // The values of variables come as members of a JSON object, so none can have such a name.
      return isReservedMember(node.name.value) ? jsonRefusals.member_name(node.name.value) : null;
    default:
      return null;
  }
}
