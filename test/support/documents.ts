import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHANNELS } from '../../bin/areas';
import { ERROR_TEXTS } from '../../realtime/runtime/protocol';
import { clientTypes } from './client-types';
import { unservedPage } from './unserved-page';
import { websocketPage } from './websocket-page';

/** The files that `npm run documents` writes, as path and text. */
export const documents = (): [path: string, text: string][] => [
  ['clients/js/channels.ts', clientTypes(CHANNELS, Object.keys(ERROR_TEXTS))],
  ['docs/websocket.md', websocketPage(CHANNELS)],
  ['docs/unserved.md', unservedPage(notYetServed())],
];

/** Operations that are not served. `npm run documents` runs compiled, without fixtures, in the project's folder. */
const notYetServed = (): readonly string[] =>
  JSON.parse(readFileSync(join(process.cwd(), 'test/fixtures/not-yet-served.json'), 'utf8')) as readonly string[];
