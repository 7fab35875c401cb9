import { COMMAND_NAMES, OWN_NAMES, SHORT_NAMES, TEMPLATE_GROUPS } from '../../domain/automation/templates/members';

/** docs/templates.md, from the groups. */
export function templatesPage(): string {
  const groups = [...TEMPLATE_GROUPS].flatMap(([name, { filled, permission, members }]) => [
    `## \`${name}\``,
    '',
    `Filled when: ${filled}.`,
    `Permission of a manual run: ${permission === null ? 'none' : `\`${permission}\``}.`,
    '',
    ...table(Object.entries(members).map(([member, meaning]) => [`{{${name}.${member}}}`, meaning])),
    '',
  ]);
  const short = Object.entries(SHORT_NAMES).map(([name, path]) =>
    name === 'var' ? ['{{var.<name>}}', `\`${path}.<name>\``] : [`{{${name}}}`, `\`${path}\``],
  );
  const own = Object.entries(OWN_NAMES).map(([name, meaning]) => [`{{${name}}}`, meaning]);
  const command = Object.entries(COMMAND_NAMES).map(([name, meaning]) => [`{{${name}}}`, meaning]);
  return [HEAD, '', ...table([...short, ...own]), '', ...groups, COMMANDS, '', ...table(command), ''].join('\n');
}

const table = (rows: readonly (readonly string[])[]): string[] => [
  '| name | value |',
  '| --- | --- |',
  ...rows.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
];

const HEAD = `# Templates

<!-- Made by npm run documents from domain/automation/templates/members.ts. -->

Texts in the config of automations are templates: \`{{name}}\` is replaced by a value, and \`{{random:a,b}}\` by one of the
choices. Values are not expanded again. Unknown names are empty, and the step lists them. A value is encoded for its
place: as plain text without control characters, as a part of an address, or as a part of a JSON string. A list or an
object reads as JSON text, and a number chooses an item of a list (\`{{event.raw.choices.0.title}}\`).

A run by hand reads a group only when its user has the permission of the group; other runs read all groups.

## Short names`;

const COMMANDS = '## Runs that a command started';
