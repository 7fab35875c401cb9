#!/usr/bin/env node
// The lumio command from a checkout: installs and compiles what is missing, then becomes the compiled program (same
// process, so that signals reach it).
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, install, root } from './prepare.mjs';

install({ dev: false });
await build();
process.setSourceMapsEnabled(true);
process.argv[1] = join(root, 'dist/bin/main.js');
await import(pathToFileURL(process.argv[1]).href);
