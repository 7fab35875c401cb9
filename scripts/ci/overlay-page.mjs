// An overlay in a real browser: it shows signed chat and events once, removes the lines of a banned user, and ends with
// its token.
import { createPrivateKey, randomUUID, sign } from 'node:crypto';

/** Shows what a custom layer reaches of its page, and the types of its messages. */
const CUSTOM = `
  const shown = document.querySelector('#shown');
  const reached = [() => parent.document, () => localStorage, () => parent.location.hash].filter((reach) => {
    try { reach(); return true; } catch { return false; }
  });
  shown.textContent = self.origin + ' reaches ' + reached.length + ' ' + typeof RTCPeerConnection;
  addEventListener('message', ({ data }) => { shown.textContent += ' ' + data.event_type; });`;

/** Creates an overlay with a chat, alerts and an event list; returns its page's path and what controls it. */
export async function madeOverlay(credentials) {
  const made = await call(credentials, 'POST', '/v1/overlays', {});
  const layers = [
    { type: 'chat', config: { x: 0, y: 400, width: 600, height: 300 } },
    { type: 'alerts', config: { x: 300, y: 0, width: 600, height: 200 } },
    { type: 'event_list', config: { x: 900, y: 400, width: 300, height: 300 } },
    { type: 'custom', config: { html: '<p id="shown"></p>', css: '#shown { color: red }', js: CUSTOM } },
    { type: 'text', config: { template: 'Newest: {{last_follower}}', x: 900, y: 0 } },
  ];
  await call(credentials, 'PUT', `/v1/overlays/${made.id}/layers`, { revision: 0, layers });
  return { id: made.id, path: `/overlay/${made.key}#token=${made.access_token}` };
}

export const overlayPage = (credentials, { id }) =>
  async function use(page) {
    await page.locator('html[data-state="open"]').waitFor();
    await page.locator('.layer').nth(4).waitFor({ state: 'attached' });
    const broadcaster = { user_id: Number(credentials.connections.kick.platform_channel_id), username: 'demo' };
    const sender = { user_id: 77, username: 'viewer_77', is_anonymous: false, channel_slug: 'viewer-77' };
    const said = { message_id: 'm-1', broadcaster, sender, content: 'Hello <b>there</b>', emotes: null };
    await kick(credentials, 'chat.message.sent', said);
    await page.locator('.chat li', { hasText: 'Hello <b>there</b>' }).waitFor();
    const follower = { user_id: 78, username: 'follower_78', is_anonymous: false, channel_slug: 'follower-78' };
    await kick(credentials, 'channel.followed', { broadcaster, follower });
    await page.locator('.alert', { hasText: 'follower_78 is following now!' }).waitFor();
    await page.locator('.text', { hasText: 'Newest: follower_78' }).waitFor();
    const custom = page.frameLocator('iframe.custom').locator('#shown');
    await custom.filter({ hasText: /^null reaches 0 undefined .*chat:message .*kick:follower/ }).waitFor();
    const rows = page.locator('.events li', { hasText: 'follower_78' });
    if ((await rows.count()) !== 1) throw new Error(`the follow is shown ${await rows.count()} times`);
    await busyChat(page, credentials, { broadcaster, sender });
    const metadata = { reason: 'spam', created_at: new Date().toISOString(), expires_at: null };
    const moderator = { user_id: 9, username: 'moderator_9' };
    await kick(credentials, 'moderation.banned', { broadcaster, moderator, banned_user: sender, metadata });
    await page.locator('.chat li').first().waitFor({ state: 'detached' });
    await call(credentials, 'POST', `/v1/overlays/${id}/rotate-token`, {});
    await page.locator('html[data-state="stopped"]').waitFor();
    if ((await page.locator('.layer').count()) !== 0) throw new Error('the page goes on after the rotation');
  };

const PER_SECOND = 50;
const SECONDS = 10;

/** Fills the chat with 50 messages a second: lines and nodes stay bounded, and the newest line is shown. */
async function busyChat(page, credentials, { broadcaster, sender }) {
  await page.evaluate(() => {
    const { document, MutationObserver } = globalThis;
    const seen = (globalThis.seen = { lines: 0, nodes: 0, delay_ms: 0 });
    const observed = () => {
      const lines = document.querySelectorAll('.chat li');
      seen.lines = Math.max(seen.lines, lines.length);
      seen.nodes = Math.max(seen.nodes, document.querySelectorAll('*').length);
      const sent_at = Number(/sent at (\d+)/.exec(lines[lines.length - 1]?.textContent ?? '')?.[1]);
      if (sent_at > 0) seen.delay_ms = Math.max(seen.delay_ms, Date.now() - sent_at);
    };
    new MutationObserver(observed).observe(document.querySelector('.chat'), { childList: true });
  });
  const began_at = Date.now();
  const answers = [];
  for (let n = 0; n < PER_SECOND * SECONDS; n += 1) {
    const early_ms = began_at + (1_000 * n) / PER_SECOND - Date.now();
    if (early_ms > 0) await new Promise((resume) => setTimeout(resume, early_ms));
    const said = {
      message_id: `busy-${n}`,
      broadcaster,
      sender,
      content: `sent at ${Date.now()} as ${n}`,
      emotes: null,
    };
    answers.push(kick(credentials, 'chat.message.sent', said));
  }
  const sent_ms = Date.now() - began_at;
  await Promise.all(answers);
  await page.locator('.chat li', { hasText: `as ${PER_SECOND * SECONDS - 1}` }).waitFor();
  const { lines, nodes, delay_ms } = await page.evaluate(() => globalThis.seen);
  console.log(
    `overlay: ${answers.length} messages in ${sent_ms} ms; ${lines} lines, ${nodes} nodes, ${delay_ms} ms late`,
  );
  // 20 lines are the default of a chat.
  if (lines > 20 + 1 || nodes > 400) throw new Error(`the chat grows to ${lines} lines and ${nodes} nodes`);
}

async function call({ base_url, access_token }, method, path, body) {
  const answer = await fetch(base_url + path, {
    method,
    headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  return (await answer.json()).data;
}

async function kick({ base_url, webhook_signing }, type, payload) {
  const body = JSON.stringify(payload);
  const id = randomUUID();
  const at = new Date().toISOString();
  const signed = sign(
    'RSA-SHA256',
    Buffer.from(`${id}.${at}.${body}`),
    createPrivateKey(webhook_signing.kick_private_key),
  );
  const answer = await fetch(`${base_url}/v1/webhooks/kick`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'kick-event-type': type,
      'kick-event-version': '1',
      'kick-event-message-id': id,
      'kick-event-message-timestamp': at,
      'kick-event-signature': signed.toString('base64'),
    },
    body,
  });
  if (!answer.ok) throw new Error(`${type}: ${await answer.text()}`);
}
