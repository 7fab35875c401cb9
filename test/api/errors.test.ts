import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EngineUnavailable } from '../../kernel/failures';
import { restBody, toFailure } from '../../api/http/answers/errors';
import { NotBuilt } from '../../kernel/errors';
import { ApiError, ERROR_STATUS } from '../../kernel/errors';

const root = join(__dirname, '../..');
const documented = readFileSync(join(root, 'docs/errors.md'), 'utf8');
const rows = [...documented.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm)].map(
  (row) => [row[1]!, Number(row[2])] as const,
);

function source(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return source(path);
      return entry.name.endsWith('.ts') ? readFileSync(path, 'utf8') : '';
    })
    .join('\n');
}

test('the document lists exactly the codes that exist, with their status', () => {
  expect(Object.fromEntries(rows)).toEqual(ERROR_STATUS);
});

test('every code is used somewhere', () => {
  const code = ['access', 'api', 'app', 'ingest', 'kernel', 'services', 'views']
    .map((room) => source(join(root, room)))
    .join('\n');
  const silent = Object.keys(ERROR_STATUS).filter((name) => !code.includes(`'${name}'`));
  expect(silent).toEqual([]);
});

test.each(rows)('%s is answered with status %d', (code, status) => {
  const failure = toFailure(new ApiError(code as keyof typeof ERROR_STATUS, 'what a person reads'));
  expect(failure.status).toBe(status);
  expect(restBody(failure)).toEqual({
    error: code,
    message: expect.stringMatching(status < 500 ? /^what a person reads$/ : /^An internal/),
  });
});

test('an engine that is away is answered with 503 and a time to come again, and its name stays inside', () => {
  const failure = toFailure(new EngineUnavailable('kafka', new Error('Closed connection')));
  expect([failure.status, failure.retry_after_seconds, failure.hidden]).toEqual([503, 5, true]);
  expect(JSON.stringify(restBody(failure))).not.toMatch(/kafka|connection/i);
});

test('a read model that is being built says when to come again, a mistake of ours does not', () => {
  expect(toFailure(new NotBuilt('event-log'))).toMatchObject({
    status: 503,
    hidden: true,
    retry_after_seconds: expect.any(Number),
  });
  expect(toFailure(new TypeError('x is not a function'))).toMatchObject({
    status: 500,
    hidden: true,
    retry_after_seconds: undefined,
  });
});
