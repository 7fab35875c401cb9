import type { Operation } from '../../app/operation';
import { graphqlName, nameless, restName } from './operation-names';

/** Names of one operation, and whether the specification gives them. */
interface Names {
  rest: string | null;
  graphql: string | null;
  rest_given: boolean;
  graphql_given: boolean;
}

/**
 * docs/api-names.md: operations with a name that the specification does not give, by protocol.
 * @param given addresses in the specification: `GET /v1/plans`, `query plans`
 */
export function apiNamesPage(operations: readonly Operation[], given: readonly string[]): string {
  const known = new Set(given.map(nameless));
  const isGiven = (at: string | null): boolean => at !== null && known.has(nameless(at));
  const names = operations
    .map((operation): Names => {
      const [rest, graphql] = [restName(operation), graphqlName(operation)];
      return { rest, graphql, rest_given: isGiven(rest), graphql_given: isGiven(graphql) };
    })
    .sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));
  const both = names.filter(({ rest, graphql }) => rest !== null && graphql !== null);
  const single = names.filter(({ rest, graphql }) => rest === null || graphql === null);
  return `# Names of operations

The specification names some operations on one protocol and others on none. Lumio makes the missing name by a rule: the
GraphQL field is the verb and the noun of the path (\`POST /v1/events/test\` is \`testEvent\`), the REST path is the area
and the field (\`emitBotEvent\` is \`POST /v1/events/emit-bot\`). The page is generated (\`npm run documents\`): a name is
the specification's if a checklist of its three documents has it. Names that only the public documentation or a ruling
gives count as Lumio's.

## The specification names the REST route

${table(both.filter(({ rest_given, graphql_given }) => rest_given && !graphql_given))}
## The specification names the GraphQL field

${table(both.filter(({ rest_given, graphql_given }) => !rest_given && graphql_given))}
## The specification names neither

${table(both.filter(({ rest_given, graphql_given }) => !rest_given && !graphql_given))}
## On one protocol

${list(single)}`;
}

/** By path and then by method; operations without a route come last. */
const sortKey = ({ rest, graphql }: Names): string => rest?.split(' ').reverse().join(' ') ?? `~ ${graphql}`;

/** A GraphQL field without its kind. */
const field = (graphql: string): string => graphql.replace(/^\w+ /, '');

function table(rows: readonly Names[]): string {
  const lines = rows.map(({ rest, graphql }) => `| \`${rest}\` | \`${field(graphql!)}\` |\n`);
  return `| REST route | GraphQL field |\n| --- | --- |\n${lines.join('')}`;
}

const list = (rows: readonly Names[]): string =>
  rows
    .map(({ rest, graphql, rest_given, graphql_given }) =>
      rest !== null
        ? `- \`${rest}\`, REST only, ${originOf(rest_given)}\n`
        : `- \`${field(graphql!)}\`, GraphQL only, ${originOf(graphql_given)}\n`,
    )
    .join('');

const originOf = (given: boolean): string => (given ? 'named by the specification' : 'named by Lumio');
