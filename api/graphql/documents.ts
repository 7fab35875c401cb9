import {
  GraphQLError,
  Kind,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  visit,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { ApiError } from '../../domain/errors';
import { measure, type GraphqlLimits } from './limits';

/** A document that was parsed, measured and validated, or why it was refused. */
export interface PreparedDocument {
  /** SHA-256 of the text, in hex: the key that Apollo asks by. */
  hash: string;
  document: DocumentNode | null;
  refusal: ApiError | null;
  /** Root fields of the operation named (or the only one): what the request costs. */
  cost(operation_name: string | undefined): number;
}

export interface Documents {
  prepare(text: string): PreparedDocument;
  /** For Apollo, which looks here before it parses. */
  byHash(hash: string): DocumentNode | undefined;
}

const SUGGESTION = / Did you mean .+?\?$/;
/** Bounds of the cache: entries, and characters of text over all of them. */
const MAX_ENTRIES = 1000;
const MAX_TEXT = 4 * 1024 * 1024;

/** Every distinct text is worked through once, however often it is sent; refusals are remembered too. */
export function createDocuments(
  schema: GraphQLSchema,
  limits: GraphqlLimits,
  options: { introspection: boolean },
): Documents {
  const byText = new LRUCache<string, PreparedDocument>({ max: MAX_ENTRIES, maxSize: MAX_TEXT, sizeCalculation: size });
  const byHash = new LRUCache<string, DocumentNode>({ max: MAX_ENTRIES });
  const rules = options.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];

  function build(text: string): Omit<PreparedDocument, 'hash'> {
    let document: DocumentNode;
    try {
      document = parse(text, { maxTokens: limits.tokens, noLocation: false });
    } catch (error) {
      return refused('BAD_REQUEST', (error as GraphQLError).message);
    }
    const measured = measure(document, schema, limits);
    if (!measured.ok) return refused('BAD_REQUEST', measured.message);
    if (hasForbiddenText(document))
      return refused('VALIDATION_ERROR', 'NUL characters and lone surrogates are not allowed');
    const [first] = validate(schema, document, rules, {
      maxErrors: 1,
      hideSuggestions: !options.introspection,
    } as object);
    if (first)
      return refused('VALIDATION_ERROR', options.introspection ? first.message : first.message.replace(SUGGESTION, ''));
    return {
      document,
      refusal: null,
      cost(name) {
        for (const [operation, fields] of measured.root_fields) if (named(operation, name)) return fields;
        return 1;
      },
    };
  }

  return {
    prepare(text) {
      let known = byText.get(text);
      if (!known) {
        known = { hash: createHash('sha256').update(text).digest('hex'), ...build(text) };
        byText.set(text, known);
      }
      if (known.document && !byHash.has(known.hash)) byHash.set(known.hash, known.document);
      return known;
    },
    byHash: (hash) => byHash.get(hash),
  };
}

const size = (_value: PreparedDocument, text: string) => text.length + 1;

function refused(code: 'BAD_REQUEST' | 'VALIDATION_ERROR', message: string): Omit<PreparedDocument, 'hash'> {
  return { document: null, refusal: new ApiError(code, message), cost: () => 1 };
}

const named = (operation: OperationDefinitionNode, name: string | undefined) =>
  name === undefined || operation.name?.value === name;

/** What JSON bodies are refused for can also be spelled as an escape inside a document. */
function hasForbiddenText(document: DocumentNode): boolean {
  let found = false;
  visit(document, {
    [Kind.STRING]: (node) => {
      if (/\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(node.value)) found = true;
    },
  });
  return found;
}
