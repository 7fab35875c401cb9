import { jobNode, noting } from './jobs';

/**
 * A process of its own that runs the tests' jobs, to be killed by a test.
 * Usage: node jobs-child.js URL FILE
 */
async function main([url, outside]: string[]): Promise<void> {
  await jobNode(url!, [noting('repeat'), noting('park')], { outside: outside! });
  process.stdout.write('running\n');
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
