// npm run documents: writes the files that test/support/documents.ts makes of the declarations.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';

install({ dev: true });
await build();
const { documents } = createRequire(join(root, 'dist/bin/main.js'))('../test/support/documents.js');
for (const [path, text] of documents()) writeFileSync(join(root, path), text);
