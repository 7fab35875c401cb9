import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { asyncApiDocument } from '../../api/documents/asyncapi';
import { CHANNELS } from '../../bin/areas';
import { CLIENT_MESSAGES, SERVER_MESSAGES } from '../../realtime/runtime/channel/description';
import { errorText, PONG, parseClientMessage } from '../../realtime/runtime/channel/protocol';
import { subscribedText, unsubscribedText, welcomeText } from '../../realtime/runtime/channel/protocol';
import { loadSettings } from '../../cli/runtime/load-settings';
import { documents } from '../support/documents';
import { settingTables } from '../support/settings-page';

const ROOT = join(__dirname, '../..');
/** What is looked at here of the document; the rest of it stays. */
const AsyncApi = z.looseObject({
  servers: z.looseObject({ websocket: z.looseObject({}) }),
  channels: z.record(
    z.string(),
    z.looseObject({
      address: z.string().nullish(),
      'x-gate': z.unknown().optional(),
      messages: z.record(z.string(), z.looseObject({ name: z.string() })),
    }),
  ),
});

test.each(documents())('%s is what `npm run documents` makes of the declarations', (path, text) => {
  expect(readFileSync(join(ROOT, path), 'utf8')).toBe(text);
});

describe('the page of settings', () => {
  const rows = settingTables().flatMap((table) => table.rows);

  test('has each setting once, with a meaning that fits its cell', () => {
    const names = rows.map(({ name }) => name);
    expect(names.length).toBeGreaterThan(90);
    expect([...new Set(names)]).toEqual(names);
    const unreadable = ({ meaning }: { meaning: string }) => !/^[^|\n]{6,240}$/.test(meaning);
    expect(rows.filter(unreadable)).toEqual([]);
  });

  test('has the defaults that apply when nothing is set', () => {
    const defaults = rows.flatMap(({ name, unset }) => {
      const literal = /^`([^`]+)`$/.exec(unset)?.[1];
      return literal === undefined ? [] : [[name, literal]];
    });
    expect(defaults.length).toBeGreaterThan(40);
    const load = (env: Record<string, string>) => loadSettings({ env, cwd: '/nowhere' });
    expect(load(Object.fromEntries(defaults) as Record<string, string>)).toEqual(load({}));
  });
});

describe('the AsyncAPI document', () => {
  const shown = asyncApiDocument(CHANNELS, { version: '1.2.3', public_url: 'https://api.example/base/' });
  const document = AsyncApi.parse(shown);

  test("is valid for the specification's own parser, which finds what is not", () => {
    const { servers, ...without } = document;
    const broken = { ...without, channels: { ...document.channels, events: { address: 7 } } };
    const [whole, part] = parsed([document, broken]);
    expect(whole).toEqual([]);
    expect(part!.length).toBeGreaterThan(0);
    expect(servers.websocket).toMatchObject({ host: 'api.example', pathname: '/base/v1/ws', protocol: 'wss' });
  });

  test('has every family of channels with its gate and its messages', () => {
    const { connection, ...channels } = document.channels;
    const families = Object.values(channels).map(({ address, messages, 'x-gate': gate }) => [
      address?.replaceAll(/\{(\w+)\}/g, '<$1>'),
      gate,
      Object.values(messages).map(({ name }) => name),
    ]);
    expect(families).toEqual(CHANNELS.map(({ pattern, gate, carries }) => [pattern, gate, Object.keys(carries)]));
    expect(Object.keys(connection!.messages)).toEqual([
      ...Object.keys(CLIENT_MESSAGES),
      ...Object.keys(SERVER_MESSAGES),
    ]);
    expect(JSON.stringify(document).match(/.{0,60}(§|\bdoc[123]\b|rulings).{0,60}/g)).toBeNull();
  });
});

test('the protocol is what it is described as: the server reads what clients are told to send, and sends as told', () => {
  const messages = { type: '', channel: 'events:1', since: 'e-1', payload: '{}' };
  for (const [type, { schema }] of Object.entries(CLIENT_MESSAGES)) {
    const message = schema.parse({ ...messages, type }) as Record<string, unknown>;
    expect(parseClientMessage(JSON.stringify(message))).toEqual(message);
  }
  const texts = {
    welcome: welcomeText('0190a000-0000-7000-8000-000000000001', '1'),
    subscribed: subscribedText('events:1', 'e-1', true),
    unsubscribed: unsubscribedText('events:1'),
    pong: PONG,
    error: errorText('UNAUTHORIZED', 'events:1'),
  };
  for (const [type, { schema }] of Object.entries(SERVER_MESSAGES)) {
    const sent = JSON.parse(texts[type as keyof typeof texts]) as unknown;
    expect(schema.parse(sent)).toEqual(sent);
  }
});

/** What the parser says of each document. It is loaded apart, since it takes a while and jest would transform it. */
function parsed(given: unknown[]): string[][] {
  const script = `const { Parser } = require('@asyncapi/parser');
    const documents = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
    const parser = new Parser();
    Promise.all(documents.map((one) => parser.parse(JSON.stringify(one)))).then((all) =>
      console.log(JSON.stringify(all.map(({ diagnostics }) => diagnostics.map(({ message }) => message)))));`;
  const input = JSON.stringify(given);
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { cwd: ROOT, input, encoding: 'utf8' }));
}
