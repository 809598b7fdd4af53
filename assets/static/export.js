// Files and pictures that every view offers.
export { copyText, download } from './attention-export.js';
import { download } from './attention-export.js';

const SCALE = 2; // pixels of the file for each unit of the drawing
const SVG = 'image/svg+xml';
const { language, tag, phrase } = window.ClozeLanguage;

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

/** A file that Python made, `{ name, type, text }`, or as PNG a drawing among them; its name. */
export async function downloadFile({ name, type, text }, asPicture = false) {
  const saved = asPicture ? name.replace(/svg$/, 'png') : name;
  if (asPicture) await downloadPicture(saved, text);
  else if (type === SVG) downloadDrawing(saved, text);
  else download(saved, text, type);
  return saved;
}

/** A drawing (SVG as text, with width and height or a viewBox) as a PNG file; rejects where the browser cannot draw it. */
export async function downloadPicture(name, svg) {
  const address = URL.createObjectURL(new Blob([spoken(svg)], { type: SVG }));
  try {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = document.createElement('canvas');
    canvas.width = picture.naturalWidth * SCALE;
    canvas.height = picture.naturalHeight * SCALE;
    const context = canvas.getContext('2d');
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => { canvas.toBlob(done, 'image/png'); });
    download(name, blob);
  } finally {
    URL.revokeObjectURL(address);
  }
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
  const paper = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  const background = getComputedStyle(document.body).getPropertyValue('--card');
  for (const [name, value] of Object.entries({ width: '100%', height: '100%', fill: background })) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}
