import { CHANNELS } from '../../bin/areas';
import { ERROR_TEXTS } from '../../realtime/runtime/protocol';
import { clientTypes } from './client-types';
import { NOT_YET_SERVED } from './stated-guards';
import { unservedPage } from './unserved-page';
import { websocketPage } from './websocket-page';

/** The files that `npm run documents` writes, as path and text. */
export const documents = (): [path: string, text: string][] => [
  ['clients/js/channels.ts', clientTypes(CHANNELS, Object.keys(ERROR_TEXTS))],
  ['docs/websocket.md', websocketPage(CHANNELS)],
  ['docs/unserved.md', unservedPage(NOT_YET_SERVED)],
];
