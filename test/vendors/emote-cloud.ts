import { type FakeCall, FakeCloud } from './cloud';

/** Emotes of 7TV, BetterTTV and FrankerFaceZ and the emojis of YouTube, on one address: the same for all channels. */
export class FakeEmoteCloud extends FakeCloud {
  constructor() {
    super();
    for (const platform of ['twitch', 'youtube', 'kick', 'trovo']) {
      this.on(`GET /v3/users/${platform}/*`, () => ({ body: { emote_set: { emotes: SEVENTV } } }));
      this.on(`GET /3/cached/users/${platform}/*`, () => ({ body: { channelEmotes: [], sharedEmotes: [BTTV] } }));
    }
    for (const room of ['id', 'yt'])
      this.on(`GET /v1/room/${room}/*`, ({ path }: FakeCall) => ({ status: 404, body: { error: path } }));
    this.on('GET /v1/set/global', () => ({ body: { default_sets: [3], sets: { 3: { emoticons: [FFZ] } } } }));
    this.on('GET /youtube/img/emojis/emojis-png-7.json', () => ({ body: [YOUTUBE] }));
  }

  env(): Record<string, string> {
    const names = ['SEVENTV', 'BTTV', 'FFZ', 'YOUTUBE'];
    return Object.fromEntries(names.map((name) => [`LUMIO_EMOTES__${name}_URL`, this.base_url]));
  }
}

const SEVENTV = Object.entries({
  POG: '60ae958e229664e8667aea38',
  KEKW: '60aeab8df6a2c3b332d21139',
  HYPERCLAP: '60b0c36388e8246a4b120d7e',
}).map(([name, id]) => ({ id, name, data: { animated: false, host: { url: `//cdn.7tv.app/emote/${id}` } } }));
const BTTV = { id: '566ca04265dbbdab32ec054a', code: 'LUL', animated: false };
const FFZ = { id: 28136, name: 'GGGG', urls: { 1: 'https://cdn.frankerfacez.com/emote/28136/1' } };
const YOUTUBE = {
  emojiId: 'UCkszU2WH9gy1mb0dV-11UJg/hello',
  shortcuts: [':yougotthis:'],
  image: { thumbnails: [{ url: 'https://yt3.ggpht.com/hello=w48-h48-c-k-nd' }] },
};
