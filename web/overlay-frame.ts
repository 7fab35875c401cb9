import type { CustomCode } from './source/custom';

// Policies of documents do not bound peer connections.
for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel'])
  Reflect.deleteProperty(globalThis, name);

/** The first message of the page is the code; the code takes the later ones. */
function begin(message: MessageEvent<CustomCode>): void {
  if (message.source !== parent) return;
  message.stopImmediatePropagation();
  removeEventListener('message', begin);
  const { html, css, js } = message.data;
  const style = document.createElement('style');
  style.textContent = css;
  document.head.append(style);
  document.body.innerHTML = html;
  // Indirectly, as a script of the document would run.
  (0, eval)(js);
}
addEventListener('message', begin);
