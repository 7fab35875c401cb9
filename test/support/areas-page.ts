import { areasOf } from '../../bin/areas';

/** Rooms in which an area may have a file, in the order of a command's way. */
export const AREA_ROOMS = ['domain', 'commands', 'views', 'projections', 'reactors', 'read-api', 'realtime'];

/** `docs/areas.md`: each area with the rooms in which it has a file. */
export function areasPage(): string {
  const rooms = AREA_ROOMS.map((room) => new Set(areasOf(room).map(({ context, name }) => `${context}/${name}`)));
  const areas = [...new Set(rooms.flatMap((names) => [...names]))].sort();
  const rows = areas.map((area) => {
    const marks = rooms.map((names) => (names.has(area) ? '×' : ''));
    return `| \`${area}\` | ${marks.join(' | ')} |`;
  });
  return `# Areas

\`npm run documents\` writes this page. An area has the same path in every room: \`<room>/<context>/<area>.ts\`.

| area | ${AREA_ROOMS.map((room) => `\`${room}\``).join(' | ')} |
| --- |${' --- |'.repeat(AREA_ROOMS.length)}
${rows.join('\n')}
`;
}
