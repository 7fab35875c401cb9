import type { ASTNode } from 'graphql';

/** Position in the text of a document; both count from 1. */
export interface SourceLocation {
  readonly line: number;
  readonly column: number;
}

const PLACE = Symbol('place');
type Placed = { [PLACE]?: SourceLocation; loc?: unknown };

/**
 * Replaces the parser's location of a node by its line and column. The parser's own holds tokens, which are linked to
 * all others of the text, and GraphQL errors count the lines of the whole text for each node with a location.
 */
export function pruneLocation(node: ASTNode): void {
  const { loc } = node;
  if (!loc) return;
  const { line, column } = loc.startToken;
  (node as Placed)[PLACE] = { line, column };
  (node as Placed).loc = undefined;
}

export const locationOf = (node: ASTNode): SourceLocation | undefined => (node as Placed)[PLACE];

/** The places of those nodes that have one; undefined when none has. */
export function locationsOf(nodes: readonly ASTNode[] | undefined): readonly SourceLocation[] | undefined {
  const places = (nodes ?? []).flatMap((node) => locationOf(node) ?? []);
  return places.length > 0 ? places : undefined;
}
