// Actions of a person on the live page, in a real browser.
/* global document, window, getComputedStyle, Node */

/** Opens the address that the start prints: events arrive, and the keyboard reaches everything that a mouse does. */
export async function livePage(page, credentials) {
  await page.getByText('live', { exact: true }).waitFor();
  if (page.url() !== `${credentials.base_url}/`) throw new Error(`the token stays in the address: ${page.url()}`);
  await page.locator('#services').getByText('database').waitFor();
  await emit(credentials, ['kick:follower', 'twitch:cheer', 'youtube:superchat']);
  const rows = page.locator('#events .event');
  await rows.nth(2).waitFor();
  await page.locator('#median', { hasText: 'ms' }).waitFor();
  await rows.first().focus();
  for (const key of ['ArrowDown', 'End', 'Home', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
  await page.locator('#events > li').nth(1).locator('pre').waitFor();
  await page.locator('#platform').selectOption('twitch');
  if ((await rows.filter({ visible: true }).count()) !== 1) throw new Error('the filter shows other platforms too');
  await page.locator('#platform').selectOption('');
  await page.locator('#pause').focus();
  await page.keyboard.press('Enter');
  await emit(credentials, ['kick:gift']);
  await page.getByRole('button', { name: 'Go on (1)' }).waitFor();
  if ((await rows.count()) !== 3) throw new Error('the list goes on although it is paused');
  await page.keyboard.press('p');
  await rows.nth(3).waitFor();
  // A reload continues with the page's data, without another login.
  await page.reload();
  await page.getByText('live', { exact: true }).waitFor();
  await contrasts(page);
  // The address of a later start, opened in the same tab: the token is removed there, too.
  await page.evaluate((token) => (window.location.hash = `token=${token}`), credentials.access_token);
  await page.waitForURL(`${credentials.base_url}/`);
  await page.getByText('live', { exact: true }).waitFor();
}

/** A new user, on a phone: a wrong token is refused with a message, a valid one opens the page. */
export async function pastedToken(page, { user_api_key, ...credentials }) {
  await page.locator('#token').fill('lm_usr_wrong');
  const refused = page.waitForResponse((response) => response.status() === 401);
  await page.keyboard.press('Enter');
  await refused;
  await page.getByText('Authentication required').waitFor();
  await page.locator('#token').fill(user_api_key);
  await page.getByRole('button', { name: 'Watch' }).click();
  await page.getByText('live', { exact: true }).waitFor();
  await emit(credentials, ['trovo:spell']);
  await page.locator('#events .event').first().waitFor();
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wider > 0) throw new Error(`the page is ${wider} px wider than the phone`);
  await contrasts(page);
}

async function emit({ base_url, access_token }, types) {
  for (const event_type of types) {
    const answer = await fetch(`${base_url}/v1/events/test`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ event_type }),
    });
    if (!answer.ok) throw new Error(`${event_type}: ${await answer.text()}`);
  }
}

/** Fails for text with little contrast: WCAG AA requires 4.5 to 1. */
async function contrasts(page) {
  const weak = await page.evaluate(() => {
    const channels = (color) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (rgb) => {
      const [r, g, b] = rgb.map((one) =>
        one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const groundOf = (node) => {
      for (let one = node; one; one = one.parentElement) {
        const ground = channels(getComputedStyle(one).backgroundColor);
        if (ground[3] > 0) return ground;
      }
      return [255, 255, 255];
    };
    return [...document.querySelectorAll('body *')].flatMap((node) => {
      const text = [...node.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim() !== '');
      if (!text || node.closest('[hidden], noscript') !== null) return [];
      const [a, b] = [channels(getComputedStyle(node).color), groundOf(node)].map((rgb) => light(rgb.slice(0, 3)));
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return ratio < 4.5 ? [`${node.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`] : [];
    });
  });
  if (weak.length > 0) throw new Error(`too little contrast: ${weak.join('; ')}`);
}
