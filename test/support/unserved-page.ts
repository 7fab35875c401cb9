/** docs/unserved.md: the operations of the specification that are not served, by protocol. */
export function unservedPage(unserved: readonly string[]): string {
  const graphql = (at: string): boolean => /^(?:query|mutation) /.test(at);
  const list = (operations: readonly string[]): string => operations.map((at) => `- \`${at}\`\n`).join('');
  const rest = unserved.filter((at) => !graphql(at));
  const fields = unserved.filter(graphql);
  const counts = `${rest.length} of REST and ${fields.length} of GraphQL`;
  return `# Operations that are not served

The specification has these operations, and this release does not serve them: ${counts}. The list
is generated (\`npm run documents\`), and a test compares it with what the server serves.

## REST

${list(rest)}
## GraphQL

${list(fields)}`;
}
