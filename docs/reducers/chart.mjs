// Draws an object of numbers, like the state of chat-heat.mjs, as an SVG with a bar for each member.
// lumio replay … --reducer … | node docs/reducers/chart.mjs > chart.svg
import { text } from 'node:stream/consumers';

const bars = Object.entries(JSON.parse(await text(process.stdin))).sort(([a], [b]) => (a < b ? -1 : 1));
const most = Math.max(1, ...bars.map(([, value]) => value));
const [BAR, GAP, HEIGHT] = [24, 6, 200];
const escaped = (name) => name.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

const drawn = bars.map(([name, value], place) => {
  const height = (value / most) * HEIGHT;
  const [x, y] = [place * (BAR + GAP), HEIGHT - height];
  const label = `<title>${escaped(name)}: ${value}</title>`;
  return `<rect x="${x}" y="${y}" width="${BAR}" height="${height}" fill="#7c3aed">${label}</rect>`;
});
const width = bars.length * (BAR + GAP);
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}">${drawn.join('')}</svg>`);
