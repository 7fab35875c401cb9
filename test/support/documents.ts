import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHANNELS, OPERATIONS } from '../../bin/areas';
import { ERROR_TEXTS } from '../../realtime/runtime/channel/protocol';
import { apiNamesPage } from './api-names-page';
import { areasPage } from './areas-page';
import { clientTypes } from './client-types';
import { settingsPage } from './settings-page';
import { templatesPage } from './templates-page';
import { unservedPage } from './unserved-page';
import { websocketPage } from './websocket-page';

/** The files that `npm run documents` writes, as path and text. */
export const documents = (): [path: string, text: string][] => [
  ['clients/js/channels.ts', clientTypes(CHANNELS, Object.keys(ERROR_TEXTS))],
  ['docs/areas.md', areasPage()],
  ['docs/operating/settings.md', settingsPage()],
  ['docs/templates.md', templatesPage()],
  ['docs/websocket.md', websocketPage(CHANNELS)],
  ['docs/unserved.md', unservedPage(fixture('not-yet-served') as string[])],
  ['docs/api-names.md', apiNamesPage(OPERATIONS, stated())],
];

/** Addresses of the operations in the specification. */
const stated = (): string[] => (fixture('stated-guards') as { rows: { at: string }[] }).rows.map(({ at }) => at);

/** A file of test/fixtures. `npm run documents` runs compiled, without fixtures, in the project's folder. */
const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(join(process.cwd(), `test/fixtures/${name}.json`), 'utf8'));
