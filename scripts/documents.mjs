// npm run documents: writes what is made of the declarations: the types of clients/js and docs/websocket.md.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, install, root } from './prepare.mjs';

install({ dev: true });
await build();
const { documents } = createRequire(join(root, 'dist/bin/main.js'))('../test/support/documents.js');
for (const [path, text] of documents()) writeFileSync(join(root, path), text);
