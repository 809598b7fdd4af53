// Files and pictures that every view offers.
export { copyText, download } from './download.js';
import { download } from './download.js';
import { node } from './svg.js';

const SCALE = 2; // pixels of the file for each unit of the drawing, where all browsers can hold so many
const [LONGEST, LARGEST] = [32_767, 16_777_216]; // pixels of a side in Firefox, and of a canvas in Safari on a phone
const SVG = 'image/svg+xml';
const { language, tag, phrase, t } = window.ClozeLanguage;
/** What to say where `downloadPicture` rejects. */
export const BROKEN = t`This browser cannot draw the picture; save it as SVG.`;

/** A drawing (SVG as text) in the page's language: Python marks the texts of the program (viz/svg.py); sentences and words have no mark. */
export function spoken(svg) {
  if (!svg.includes('data-wording=')) return svg;
  const drawing = new DOMParser().parseFromString(svg, SVG);
  for (const part of drawing.querySelectorAll('[data-wording]')) {
    part.textContent = phrase(JSON.parse(part.dataset.wording));
    part.removeAttribute('data-wording');
  }
  // Han characters have other shapes in Chinese than in Japanese.
  if (language !== 'en') drawing.documentElement.setAttribute('lang', tag);
  return new XMLSerializer().serializeToString(drawing);
}

/** A drawing as an SVG file. */
export function downloadDrawing(name, svg) {
  download(name, spoken(svg), SVG);
}

/** A drawing (SVG as text, with width and height or a viewBox) as a PNG file; rejects where the browser cannot draw it. */
export async function downloadPicture(name, svg) {
  const address = URL.createObjectURL(new Blob([spoken(svg)], { type: SVG }));
  try {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = document.createElement('canvas');
    const { naturalWidth: width, naturalHeight: height } = picture;
    const scale = Math.min(SCALE, LONGEST / Math.max(width, height), Math.sqrt(LARGEST / (width * height)));
    canvas.width = Math.floor(width * scale);
    canvas.height = Math.floor(height * scale);
    const context = canvas.getContext('2d');
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => { canvas.toBlob(done, 'image/png'); });
    if (!blob) throw new Error(`no picture of ${canvas.width} x ${canvas.height} pixels`);
    download(name, blob);
  } finally {
    URL.revokeObjectURL(address);
  }
}

const AIR = 14; // pixels around a drawing with a title

/**
 * A drawing that can be understood alone: a title, lines and a legend above it, in the page's language and colours.
 * inner: an <svg> or <image> element of `width` x `height`; keys: [{ text, colour, square }].
 */
export function titledDrawing(inner, { width, height, title, lines = [], keys = [] }) {
  const page = getComputedStyle(document.body);
  const value = (name) => page.getPropertyValue(name).trim();
  const pen = document.createElement('canvas').getContext('2d');
  const measure = (text, font) => { pen.font = font; return pen.measureText(text).width; };
  const sans = value('--sans') || 'sans-serif';
  const wide = Math.max(width, 520, measure(title, `600 16px ${sans}`), ...lines.map((text) => measure(text, `13px ${sans}`))) + 2 * AIR;
  const parts = [node('text', { x: AIR, y: AIR + 16, fill: value('--ink'), 'font-family': sans, 'font-size': 16, 'font-weight': 600 }, title)];
  let y = AIR + 16;
  for (const text of lines) {
    y += 20;
    parts.push(node('text', { x: AIR, y, fill: value('--ink-soft'), 'font-family': sans, 'font-size': 13 }, text));
  }
  let x = wide;
  for (const { text, colour, square } of keys) {
    const room = 16 + measure(text, `13px ${sans}`);
    if (x + room > wide - AIR) [x, y] = [AIR, y + 22];
    parts.push(square ? node('rect', { x, y: y - 9, width: 9, height: 9, fill: colour }) : node('circle', { cx: x + 4.5, cy: y - 4.5, r: 4.5, fill: colour }),
      node('text', { x: x + 16, y, fill: value('--ink'), 'font-family': sans, 'font-size': 13 }, text));
    x += room + 20;
  }
  const top = y + AIR;
  const drawing = node('svg', { width: wide, height: top + height + AIR, viewBox: `0 0 ${wide} ${top + height + AIR}`, role: 'img' });
  inner.setAttribute('x', AIR);
  inner.setAttribute('y', top);
  drawing.append(node('title', {}, title), node('rect', { width: '100%', height: '100%', fill: value('--card') }), ...parts, inner);
  if (language !== 'en') drawing.setAttribute('lang', tag);
  return new XMLSerializer().serializeToString(drawing);
}

/** The same around a canvas, `ratio` of whose pixels are one unit of the drawing. */
export function titledCanvas(canvas, ratio, words) {
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  const image = node('image', { width, height, href: canvas.toDataURL('image/png') });
  return titledDrawing(image, { ...words, width, height });
}

const STYLED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight'];

/** A drawing of the page as a file of its own: what style sheets and variables make of it now is written into it. */
export function drawnSvg(svg) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((part, n) => {
    const style = getComputedStyle(originals[n]);
    part.setAttribute('style', STYLED.map((name) => `${name}: ${style.getPropertyValue(name)}`).join('; '));
    part.removeAttribute('class');
  });
  copy.querySelector('[visibility="hidden"]')?.remove();
  copy.prepend(node('rect', { width: '100%', height: '100%', fill: getComputedStyle(document.body).getPropertyValue('--card') }));
  return new XMLSerializer().serializeToString(copy);
}
