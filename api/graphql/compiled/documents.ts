import {
  GraphQLError,
  Kind,
  NoSchemaIntrospectionCustomRule,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
  type ASTNode,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { ApiError } from '../../../kernel/errors';
import { createDocumentCache } from './document-cache';
import { inspect } from '../limits/inspect';
import { limitedFields, type LimitedField } from '../limits/limited-fields';
import { measure, type GraphqlLimits, type MeasuredOperation } from '../limits/limits';
import { overlappingFields } from '../limits/overlapping-fields';
import { locationsOf, type SourceLocation } from '../limits/locations';
import { reason, type Reason, type Refusal } from '../refusals';

/** Operation of a document, found by its name. */
export interface ChosenOperation extends MeasuredOperation {
  readonly node: OperationDefinitionNode;
  /** Index among the document's operations. */
  readonly index: number;
  /** Root fields that have a limit of their own. */
  readonly limited: readonly LimitedField[];
}

/** A document that was parsed, measured and validated. */
export interface ReadyDocument {
  readonly refusal: null;
  readonly text: string;
  readonly document: DocumentNode;
  /** Operation of a name, or the only one without a name. @throws ApiError BAD_REQUEST */
  choose(name: string | undefined): ChosenOperation;
  /** Estimated bytes of its nodes. */
  readonly node_bytes: number;
  /** Estimated bytes in memory, including functions compiled from the document. */
  bytes: number;
}
/** A document that is not executed. */
export interface RefusedText {
  readonly refusal: Refusal;
  readonly bytes: number;
}
export type PreparedDocument = ReadyDocument | RefusedText;

export interface Documents {
  /** Whether the text is prepared already. */
  has(text: string): boolean;
  prepare(text: string): PreparedDocument;
  /** Keeps a frequent document, whose compiled functions add `grown` bytes. */
  keep(document: ReadyDocument, grown: number): void;
  /** Estimated bytes of all cached documents. */
  bytes(): number;
}

/** Most reported errors of a document; the validator stops there. */
const MAX_ERRORS = 20;
const SUGGESTION = / Did you mean .+?\?$/;
/** Measured: a node with its members, its lists and its place takes 130 to 190 bytes. */
const BYTES_PER_NODE = 200;
/** The entry itself, with its closures and its places in the cache. */
const BYTES_PER_ENTRY = 1000;

/** Prepares every distinct text once, however often it is sent; refusals are cached too. */
export function createDocuments(
  schema: GraphQLSchema,
  limits: GraphqlLimits,
  options: { introspection: boolean },
): Documents {
  const cache = createDocumentCache<PreparedDocument>();
  const rules = [
    ...specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule),
    overlappingFields(schema),
    ...(options.introspection ? [] : [NoSchemaIntrospectionCustomRule]),
  ];

  function build(text: string): PreparedDocument {
    const refuse = (code: Refusal['code'], reasons: Reason[]): RefusedText => ({
      refusal: { code, reasons },
      bytes: textBytes(text) + reasons.reduce((sum, { message }) => sum + 2 * message.length + 200, BYTES_PER_ENTRY),
    });
    let document: DocumentNode;
    try {
      document = parse(text, { maxTokens: limits.tokens, maxComments: limits.comments });
    } catch (error) {
      const { message, locations } = error as GraphQLError;
      return refuse('BAD_REQUEST', [reason(message, locations)]);
    }
    const { nodes, fault } = inspect(document);
    if (fault) {
      return refuse(fault.error.code as Refusal['code'], [reason(fault.error.message, locationsOf([fault.node]))]);
    }
    const subscription = document.definitions.find(isSubscription);
    if (subscription) return refuse('VALIDATION_ERROR', [reason(NO_SUBSCRIPTIONS, locationsOf([subscription]))]);
    const measured = measure(document, schema, limits);
    if (!measured.ok) return refuse('BAD_REQUEST', [reason(measured.message, locationsOf([measured.node]))]);
    const errors = validate(schema, document, rules, {
      maxErrors: MAX_ERRORS,
      hideSuggestions: !options.introspection,
    } as object);
    if (errors.length > 0) {
      return refuse('VALIDATION_ERROR', reasonsOf(errors, options.introspection));
    }
    const operations = [...measured.operations].map(([node, sizes], index) => {
      return { node, index, limited: limitedFields(document, node, schema), ...sizes };
    });
    return {
      refusal: null,
      text,
      document,
      choose: (name) => choose(operations, name),
      node_bytes: nodes * BYTES_PER_NODE,
      // Texts inside the document are slices of its text, or copies when they have escapes.
      bytes: BYTES_PER_ENTRY + 2 * textBytes(text) + nodes * BYTES_PER_NODE,
    };
  }

  return {
    has: (text) => cache.get(text) !== undefined,
    prepare(text) {
      let known = cache.get(text);
      if (!known) cache.add(text, (known = build(text)));
      return known;
    },
    keep(document, grown) {
      document.bytes += grown;
      cache.keep(document.text, document);
    },
    bytes: () => cache.bytes(),
  };
}

const NO_SUBSCRIPTIONS = 'Subscriptions are not offered in GraphQL: subscribe to channels on the WebSocket at /v1/ws';

/** Merges errors of the same text into a reason with all their locations. */
function reasonsOf(errors: readonly GraphQLError[], suggest: boolean): Reason[] {
  const places = new Map<string, SourceLocation[]>();
  for (const { message, nodes } of errors) {
    const text = suggest ? message : message.replace(SUGGESTION, '');
    places.set(text, [...(places.get(text) ?? []), ...(locationsOf(nodes) ?? [])]);
  }
  return [...places].map(([text, found]) => reason(text, found.length > 0 ? found : undefined));
}

const isSubscription = (node: ASTNode) =>
  node.kind === Kind.OPERATION_DEFINITION && (node.operation as string) === 'subscription';

/** Bytes of a text in memory: one per character, or two per character as soon as one is not Latin-1. */
function textBytes(text: string): number {
  return /[^\0-\xff]/.test(text) ? 2 * text.length : text.length;
}

function choose(operations: readonly ChosenOperation[], name: string | undefined): ChosenOperation {
  if (name === undefined && operations.length > 1) {
    throw new ApiError('BAD_REQUEST', 'Must provide operation name if query contains multiple operations.');
  }
  const found = operations.find(({ node }) => name === undefined || node.name?.value === name);
  if (found) return found;
  throw new ApiError(
    'BAD_REQUEST',
    name === undefined ? 'Must provide an operation.' : `Unknown operation named "${name}".`,
  );
}
