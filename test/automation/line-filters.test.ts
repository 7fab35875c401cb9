import { allowedDomain, isAllowed, linkedHosts } from '../../domain/automation/modules/linked-hosts';
import { actOfWarning, possibleAct, strongestOf } from '../../domain/automation/modules/module-acts';
import { MODULE_CONFIGS } from '../../domain/automation/modules/module-configs';
import { isSpam } from '../../domain/automation/modules/spam';
import { compileWords } from '../../domain/automation/modules/word-filter';
import type { ChatPart } from '../../domain/chat/chat-messages';

describe('links', () => {
  test.each([
    ['see https://Evil.com/a?b', ['evil.com']],
    ['see evil.com/good.com, or sub.example.co.uk!', ['evil.com', 'sub.example.co.uk']],
    ['https://good.com@evil.com:80/x', ['evil.com']],
    ['good.com@evil.com', ['evil.com']],
    ['HTTP:\\\\evil.com\\x ftp://files.example.org', ['evil.com', 'files.example.org']],
    ['ｅｖｉｌ．ｃｏｍ ev\u200bil.com evil。com', ['evil.com', 'evil.com', 'evil.com']],
    ['пример.рф', ['xn--e1afmkfd.xn--p1ai']],
    ['http://127.0.0.1:8080 http://[::1]/', ['127.0.0.1', '[::1]']],
    ['see <https://evil.com>, [https://evil.com] (https://good.com)', ['evil.com', 'evil.com', 'good.com']],
    ['https://good.com, https://good.com... https://good.com!', ['good.com', 'good.com', 'good.com']],
    [
      'https://good.com,evil.com https://(evil.com) https://ev%69l.com',
      ['good.com', 'evil.com', 'evil.com', 'evil.com'],
    ],
    ['https://good.com,https://evil.com/good.com', ['good.com', 'evil.com']],
    ['version 1.2.3.4, e.g. node.js ... 3.14 a@b', []],
  ])('of %s are %j', (text, hosts) => expect(linkedHosts(text).sort()).toEqual([...hosts].sort()));

  test('are allowed by domain, with subdomains', () => {
    const domains = ['example.com'];
    const hosts = ['example.com', 'a.b.example.com', 'notexample.com', 'example.com.evil.org'];
    expect(hosts.map((host) => isAllowed(host, domains))).toEqual([true, true, false, false]);
    const given = ['https://Example.com/x', 'co.uk', 'github.io', 'me.github.io', 'no domain', 'a.com b.com'];
    expect(given.map(allowedDomain)).toEqual(['example.com', null, null, 'me.github.io', null, null]);
  });
});

describe('spam', () => {
  const text = (said: string): ChatPart[] => [{ type: 'text', text: said }];
  const emote: ChatPart = { type: 'emote', text: 'KAPPA', id: '1', provider: 'twitch', url: null, animated: false };
  test.each([
    [text('noooo'), { max_repeats: 4 }, false],
    [text('nooooo'), { max_repeats: 4 }, true],
    [text('buy Buy BUY'), { max_repeats: 2 }, true],
    [text('HELLO THEre'), { max_caps_percent: 70 }, true],
    [text('HELLO'), { max_caps_percent: 70 }, false],
    [[...text('hello there '), emote, emote], { max_caps_percent: 10 }, false],
    [text('hi!!!!!!!!!!'), { max_symbols_percent: 80 }, true],
    [[emote, emote], { max_emotes: 1 }, true],
    [[emote, emote], {}, false],
  ])('%#', (parts, limits, spam) => expect(isSpam(parts, limits)).toBe(spam));
});

describe('filtered words', () => {
  const filter = compileWords({
    words: [
      ...['Idiot', 'bad', 'bad  phrase', 'bad phrase book', 'c++', 'нет', 'half-wit', '[a/b]{1}|^$.*?(c)\\'],
      ...['one two', 'two three', 'Οδος'],
    ],
    patterns: ['fr(e+)\\s*money', '^a😀b$'],
  });
  test.each([
    ['you idiot!', 'you ***!'],
    ['idiotic', null],
    ['ＩＤＩＯＴ and i\u200bdiot', '*** and ***'],
    ['\u0456d\u0456\u043et', '***'],
    ['a bad\tphrase, c++', 'a ***, ***'],
    ['НЕТ', '***'],
    ['😀 FREEEE money', '😀 ***'],
    ['a😀b', '***'],
    ['burn', null],
    ['a Half-Wit', 'a ***'],
    ['a half\u2010wit', 'a ***'],
    ['[a/b]{1}|^$.*?(c)\\', '***'],
    ['a bad  phrase book', 'a ***'],
    ['one two three', '***'],
    ['ΟΔΟΣ οδός οδος', '*** οδός ***'],
  ])('in %s', (text, masked) => {
    expect(filter.matches(text)).toBe(masked !== null);
    expect(filter.mask(text)).toBe(masked ?? text);
  });

  const problem = (config: object) => MODULE_CONFIGS.word_filter.safeParse(config).error?.issues[0]?.message;
  test.each([
    [{ patterns: ['('] }, 'the pattern ( is not valid'],
    [{ patterns: ['(?=a)'] }, 'the pattern (?=a) is not valid'],
    [{ patterns: ['\\Qa'] }, 'the pattern \\Qa is not valid'],
    [{ patterns: ['a*'] }, 'the pattern a* matches an empty text'],
    [{ patterns: Array.from({ length: 50 }, () => '[a-z]{900}') }, 'the patterns are too large together'],
    [
      { words: Array.from({ length: 300 }, () => 'w'), patterns: Array.from({ length: 201 }, () => 'p') },
      'with the patterns at most 500',
    ],
    [{ words: ['a'], patterns: ['b'] }, undefined],
  ])('%# is checked', (config, message) => expect(problem(config)).toBe(message));

  test('of a long pattern take linear time', () => {
    expect(compileWords({ patterns: ['(x+x+)+y'] }).matches('x'.repeat(4_000))).toBe(false);
  });

  test('of many alike phrases, and matches that each read the whole text, take bounded time', () => {
    const words = Array.from({ length: 500 }, (_, at) => `${'a '.repeat(95)}${at}`);
    expect(compileWords({ words }).mask('a '.repeat(500))).toBe('a '.repeat(500));
    const patterns = Array.from({ length: 200 }, (_, at) => `a.*a.*a.*z${at}`);
    const { mask } = compileWords({ patterns: [...patterns, 'a'] });
    expect(mask(`b ${'a'.repeat(500)}`)).toMatch(/^b (\*\*\*)+$/);
  });
});

test('one act is the strongest that the platform carries out', () => {
  expect(strongestOf([{ action: 'delete' }, { action: 'ban' }, { action: 'warn' }] as const)).toEqual({
    action: 'ban',
  });
  expect([1, 2, 3, 5, 6, 9].map(actOfWarning)).toEqual(['warn', 'warn', 'delete', 'delete', 'timeout', 'timeout']);
  const all = ['warn', 'delete', 'timeout', 'ban'] as const;
  const on = (platform: 'twitch' | 'kick' | 'trovo') => all.map((action) => possibleAct(action, platform, 'm'));
  expect(on('twitch')).toEqual(all);
  expect(on('kick')).toEqual(['warn', 'delete', 'delete', 'delete']);
  expect(on('trovo')).toEqual(['warn', 'warn', 'warn', 'ban']);
  expect(possibleAct('delete', 'kick', null)).toBe('warn');
});
