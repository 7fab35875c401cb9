import { LumioClient } from '../clients/js/index';
import { byId } from './dom';
import { Sounds } from './source/sounds';
import { Stage } from './source/stage';
import type { PageState } from './source/types';
import { WidgetLayer } from './source/widget';

/** The page's kind and the key or id, of `/overlay/{key}` or `/widget/{id}`. */
const [, kind = '', id = ''] = location.pathname.split('/');

/** The token of the fragment or the query; the address keeps it, because a source loads it again. */
function tokenOf(): string | null {
  const fragment = new URLSearchParams(location.hash.slice(1)).get('token');
  return fragment ?? new URLSearchParams(location.search).get('token');
}

interface PageMessage {
  event_type: string;
  data: Record<string, unknown>;
  /** The message was sent before the page came back. */
  missed?: boolean;
}

const ENDED: ReadonlySet<string> = new Set(['TOKEN_REVOKED', 'TOKEN_EXPIRED']);

function start(token: string): void {
  const stage = new Stage(byId('stage'));
  const widget = kind === 'widget' ? new WidgetLayer(id) : null;
  const client = new LumioClient({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/v1/ws`,
    token: () => token,
  });
  const root = document.documentElement;
  /** The server ended the token; a browser is not shown why the next connection fails. */
  let token_ended = false;
  client.on('state', (state) => {
    root.dataset.state = state;
    if (state === 'open') token_ended = false;
    // A page without its channel shows nothing of it any more.
    if (state === 'stopped') stage.clear();
  });
  client.on('problem', ({ code, message }) => {
    console.warn(code, message);
    if (code === 'LOST' && token_ended) client.close();
    if (ENDED.has(code)) token_ended = true;
  });
  let account_id: string | null = null;
  const sounds = new Sounds((target) => target.type === kind && (target.id === id || target.id === own_id));
  let own_id = id;

  function update(data: Record<string, unknown>): void {
    const whole = widget?.update(data) ?? data;
    stage.update(whole as Partial<PageState>);
    if (typeof data.overlay_id === 'string') own_id = data.overlay_id;
    if (account_id !== null || typeof data.account_id !== 'string') return;
    ({ account_id } = data as { account_id: string });
    client.subscribe(`sounds:${account_id}`, (message) =>
      sounds.take(message.event_type, message.data as Record<string, unknown>),
    );
  }

  client.subscribe(
    `${kind === 'widget' ? 'widget' : 'overlay'}:${id}` as `overlay:${string}`,
    (message) => {
      const { event_type, data, missed } = message as unknown as PageMessage;
      if (event_type === `${kind}:update`) update(data);
      else stage.take(event_type, data, missed);
    },
    { onSubscribed: (accepted) => stage.subscribed(accepted), onEnded: () => client.close() },
  );
}

const token = tokenOf();
if (token === null) console.warn('The address has no token');
else start(token);
