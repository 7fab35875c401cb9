import { LumioClient, Refused, type ClientState, type EventPush, type Problem } from '../clients/js/index';
import { Delays } from './delays';
import { byId, pill } from './dom';
import { Feed } from './feed';
import { watchHealth } from './health';
import { Chat, Viewers } from './panels';
import { forget, givenToken, keep, openSession, tokenInAddress, type Session } from './session';

const MINUTE_MS = 60_000;
const LOOKS = { connecting: 'waiting', open: 'good', waiting: 'waiting', stopped: 'bad' } as const;
const WORDS: Record<ClientState, string> = {
  connecting: 'connecting',
  open: 'live',
  waiting: 'coming back',
  stopped: 'stopped',
};

const feed = new Feed();
const delays = new Delays();
const chat = new Chat();
const viewers = new Viewers();
/** Number of attempts to watch; only the last one counts, so that a double click does not watch twice. */
let tries = 0;
let count = 0;
/** Arrival times of the events in the last minute, oldest first. */
let minute: number[] = [];
/** Set when the figures must be drawn; they are drawn at most once a frame. */
let stale = false;

function arrived(event_type: string, data: EventPush): void {
  const now = Date.now();
  count += 1;
  minute.push(now);
  const delay = delayOf(data.created_at, now);
  if (delay !== null) delays.add(delay);
  feed.add(event_type, data, delay);
  if (stale) return;
  stale = true;
  requestAnimationFrame(() => {
    stale = false;
    delays.show();
    figures();
  });
}

function figures(): void {
  const since = Date.now() - MINUTE_MS;
  minute = minute.filter((at) => at > since);
  byId('count').textContent = count.toLocaleString();
  byId('rate').textContent = String(minute.length);
}

/** Latency in milliseconds; null for times in whole seconds, whose rounding distorts it. */
function delayOf(created_at: unknown, now: number): number | null {
  const at = typeof created_at === 'string' ? Date.parse(created_at) : NaN;
  return Number.isNaN(at) || at % 1_000 === 0 ? null : Math.max(0, now - at);
}

function askForToken(reason: string): void {
  byId('entry-reason').textContent = reason;
  byId('entry').hidden = false;
  pill(byId('state'), 'no token', 'bad');
  byId('token').focus();
}

async function watch(token: string): Promise<void> {
  const mine = ++tries;
  pill(byId('state'), 'connecting', 'waiting');
  try {
    const session = await openSession(token);
    if (mine !== tries) return;
    connect(session);
    byId('entry').hidden = true;
  } catch (error) {
    if (mine !== tries) return;
    if (error instanceof Refused) forget();
    askForToken(error instanceof Error ? error.message : String(error));
  }
}

function connect({ account_id, wsToken }: Session): void {
  const client = new LumioClient({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/v1/ws`,
    token: wsToken,
  });
  client.on('state', (state) => pill(byId('state'), WORDS[state], LOOKS[state]));
  client.on('problem', ({ code, message, channel = '' }) => console.warn(code, message, channel));
  const over = ({ code, message }: Problem) => {
    client.close();
    forget();
    askForToken(`${code}: ${message}`);
  };
  client.subscribe(`events:${account_id}`, ({ event_type, data }) => arrived(event_type, data), { onEnded: over });
  client.subscribe(`chat:${account_id}`, (message) => chat.add(message));
  client.subscribe(`channel-status:${account_id}`, (message) => viewers.take(message));
}

byId<HTMLFormElement>('entry-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = byId<HTMLInputElement>('token').value.trim();
  byId<HTMLInputElement>('token').value = '';
  keep(token);
  void watch(token);
});
// Opening an address with a token on the open page changes only the fragment.
window.addEventListener('hashchange', () => {
  if (tokenInAddress() !== null) location.reload();
});
setInterval(figures, 5_000);
void watchHealth();
const given = givenToken();
if (given === null) askForToken('');
else void watch(given);
