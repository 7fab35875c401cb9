/** Events on the demo's channels: pure, and the same for the same seed. The sender adds times and delivery ids. */

export type Beat =
  | { kind: 'chat'; viewer: Viewer; content: string }
  | { kind: 'follow'; viewer: Viewer }
  | { kind: 'subscribe'; viewer: Viewer; months: number }
  | { kind: 'gift'; viewer: Viewer; giftees: Viewer[] }
  | { kind: 'ban'; viewer: Viewer; moderator: Viewer; reason: string }
  /** `started_at`: begin of the stream, RFC 3339; added by the player of the story. */
  | { kind: 'stream'; is_live: boolean; title: string; started_at?: string }
  | { kind: 'cheer'; viewer: Viewer; bits: number; message: string }
  | { kind: 'raid'; viewer: Viewer; viewers: number }
  | { kind: 'spell'; viewer: Viewer; gift: string; num: number; gift_value: number }
  | { kind: 'trovo_subscribe'; viewer: Viewer; tier: number }
  | { kind: 'order'; viewer: Viewer; number: number; items: { title: string; quantity: number; cents: number }[] }
  | { kind: 'product'; number: number; title: string; cents: number }
  | { kind: 'video'; number: number; title: string }
  | { kind: 'test' };

export interface Viewer {
  id: number;
  name: string;
}

export interface Story {
  /** Seconds until the next beat; short in bursts. `rate` is the average number of beats a second. */
  pause(rate: number): number;
  next(): Beat;
  /** Mood for the status line: `calm`, `lively`, `raid`, `hype`. */
  mood(): string;
}

const FIRST = [
  'pixel',
  'nova',
  'Ünal',
  'mika',
  'Søren',
  'otter',
  'kuro',
  'zoë',
  'grid',
  'luma',
  'たろう',
  'vega',
  'mochi',
  'Ирина',
  'raven',
  'tofu',
];
const LAST = [
  'fox',
  '_tv',
  '42',
  'plays',
  'wave',
  '_o7',
  'knight',
  'bean',
  'loop',
  'storm',
  'zip',
  '_gg',
  'byte',
  'moon',
];
const LINES = [
  'hello from {n}!',
  'that jump was clean',
  'gg',
  'what game is next?',
  'LUL',
  '[emote:37226:KEKW] [emote:37226:KEKW]',
  'first time here, love the overlay',
  'can you check the settings again?',
  '😂😂😂',
  'カワイイ',
  'no way',
  'clip it!!',
  'who else is from {n} gang',
  'water break 💧',
];
const HYPE = ['POG', 'LET’S GO :yougotthis:', '🔥🔥🔥', 'HYPE HYPE', '[emote:4148074:HYPERCLAP]', 'GGGG', 'W stream'];
const TITLES = ['Blind run, day {d}', 'Cosy building night', 'Viewers’ choice #{d}', 'Road to top 100 – part {d}'];
const SPELLS: [string, number][] = [
  ['FieryDragon', 500],
  ['Hugs', 10],
  ['Winner', 100],
  ['StayAlive', 50],
];
const GOODS: [string, number][] = [
  ['Logo T-Shirt', 2499],
  ['Coffee Mug', 1450],
  ['Sticker Pack', 600],
  ['Hoodie', 5490],
  ['Desk Mat', 3275],
];
const WEIGHTS: [Beat['kind'], number][] = [
  ['chat', 740],
  ['follow', 95],
  ['cheer', 55],
  ['subscribe', 35],
  ['spell', 25],
  ['gift', 10],
  ['trovo_subscribe', 8],
  ['order', 10],
  ['ban', 4],
  ['raid', 3],
  ['video', 4],
  ['product', 3],
  ['test', 5],
  ['stream', 3],
];

/** Random numbers from a seed (mulberry32): small, fast and good enough for a demo. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function createStory(seed: number): Story {
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)]!;
  const viewers: Viewer[] = [];
  let live = false;
  let count = 0;
  let number = 1000;
  /** Remaining beats of a burst, and its kind. */
  let burst = { left: 0, kind: 'hype' as 'raid' | 'hype' };

  /** Returns mostly earlier viewers, sometimes a new one or one with a new name. */
  function viewer(): Viewer {
    if (viewers.length < 5 || random() < 0.06) {
      const made = { id: 1_000_000 + viewers.length * 37 + below(37), name: `${pick(FIRST)}${pick(LAST)}` };
      viewers.push(made);
      return made;
    }
    // the square favours the regulars, as every chat has them
    const one = viewers[Math.floor(random() ** 2 * viewers.length)]!;
    if (random() < 0.004) one.name = `${pick(FIRST)}${pick(LAST)}`;
    return { ...one };
  }

  const line = () => pick(burst.left > 0 ? HYPE : LINES).replace('{n}', pick(FIRST));
  const title = () => pick(TITLES).replace('{d}', String(1 + below(90)));

  function kind(): Beat['kind'] {
    if (burst.left > 0) {
      burst.left -= 1;
      const roll = random();
      if (burst.kind === 'raid') return roll < 0.35 ? 'follow' : 'chat';
      return roll < 0.12 ? 'cheer' : roll < 0.2 ? 'subscribe' : roll < 0.24 ? 'gift' : 'chat';
    }
    let roll = random() * WEIGHTS.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of WEIGHTS) if ((roll -= weight) < 0) return name;
    return 'chat';
  }

  function beat(what: Beat['kind']): Beat {
    switch (what) {
      case 'follow':
        return { kind: 'follow', viewer: viewer() };
      case 'subscribe':
        return { kind: 'subscribe', viewer: viewer(), months: 1 + below(24) };
      case 'gift':
        return { kind: 'gift', viewer: viewer(), giftees: Array.from({ length: pick([1, 1, 1, 5, 5, 10]) }, viewer) };
      case 'ban':
        return { kind: 'ban', viewer: viewer(), moderator: viewers[0]!, reason: pick(['spam', 'slurs', 'scam link']) };
      case 'cheer':
        return { kind: 'cheer', viewer: viewer(), bits: pick([1, 10, 50, 100, 100, 500, 1000]), message: line() };
      case 'raid':
        burst = { left: 25 + below(40), kind: 'raid' };
        return { kind: 'raid', viewer: viewer(), viewers: 8 + below(400) };
      case 'spell': {
        const [gift, gift_value] = pick(SPELLS);
        return { kind: 'spell', viewer: viewer(), gift, gift_value, num: pick([1, 1, 2, 5]) };
      }
      case 'trovo_subscribe':
        return { kind: 'trovo_subscribe', viewer: viewer(), tier: 1 + below(3) };
      case 'order': {
        const items = Array.from({ length: 1 + below(3) }, () => pick(GOODS)).map(([name, cents]) => ({
          title: name,
          cents,
          quantity: 1 + below(2),
        }));
        return { kind: 'order', viewer: viewer(), number: (number += 1), items };
      }
      case 'product': {
        const [name, cents] = pick(GOODS);
        return { kind: 'product', number: (number += 1), title: `${name} (limited)`, cents };
      }
      case 'video':
        return { kind: 'video', number: (number += 1), title: `${title()} & more <highlights>` };
      case 'stream':
        live = !live;
        return { kind: 'stream', is_live: live, title: title() };
      case 'test':
        return { kind: 'test' };
      case 'chat':
        return { kind: 'chat', viewer: viewer(), content: line() };
    }
  }

  return {
    pause(rate) {
      // a slow swell over some hundred beats, and crowds type all at once
      const swell = 1 + 0.6 * Math.sin(count / 60);
      const speed = rate * (burst.left > 0 ? 6 : swell);
      return -Math.log(1 - random()) / speed;
    },
    next() {
      count += 1;
      if (count === 1) return beat('stream');
      if (burst.left === 0 && random() < 0.003) burst = { left: 20 + below(30), kind: 'hype' };
      return beat(kind());
    },
    mood: () => (burst.left > 0 ? burst.kind : Math.sin(count / 60) > 0.3 ? 'lively' : 'calm'),
  };
}
