// Compiles one file for jest with the same compiler and target as the build.
const { createHash } = require('node:crypto');
const { transformSync, version } = require('esbuild');

module.exports = {
  process(source, path) {
    const { code, map } = transformSync(source, {
      loader: path.endsWith('.ts') ? 'ts' : 'js',
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      sourcemap: 'external',
      sourcefile: path,
    });
    return { code, map };
  },
  getCacheKey: (source, path) => createHash('sha256').update(version).update(path).update(source).digest('hex'),
};
