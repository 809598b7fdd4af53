// Attention: colours from the style sheet, canvases at the screen's resolution, text that fits.

const STEPS = 256;

/** A colour of the style sheet as [r, g, b], whatever notation it is written in. */
function channels(colour, context) {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return Array.from(context.getImageData(0, 0, 1, 1).data.slice(0, 3));
}

/** The colours and fonts in force at `element`; read again whenever the theme changes. */
export function readPalette(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  const probe = document.createElement('canvas');
  probe.width = 1;
  probe.height = 1;
  const context = probe.getContext('2d', { willReadFrequently: true });
  const stops = [0, 1, 2, 3, 4].map((i) => channels(value(`--heat-${i}`), context));
  const ramp = new Uint32Array(STEPS);
  const bright = new Uint8Array(STEPS);
  for (let code = 0; code < STEPS; code += 1) {
    const at = (code / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const [r, g, b] = stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
    ramp[code] = (255 << 24) | (b << 16) | (g << 8) | r; // ImageData is little-endian RGBA
    bright[code] = 0.2126 * r + 0.7152 * g + 0.0722 * b > 140 ? 1 : 0;
  }
  const strong = channels(value('--hidden-mark'), context);
  const below = new Uint32Array(STEPS); // for values under zero
  const brightBelow = new Uint8Array(STEPS);
  for (let code = 0; code < STEPS; code += 1) {
    const [r, g, b] = stops[0].map((c, k) => Math.round(c + (strong[k] - c) * (code / (STEPS - 1))));
    below[code] = (255 << 24) | (b << 16) | (g << 8) | r;
    brightBelow[code] = 0.2126 * r + 0.7152 * g + 0.0722 * b > 140 ? 1 : 0;
  }
  const ends = [channels(value('--ink'), context), channels(value('--paper'), context)];
  const light = ends.map(([r, g, b]) => r + g + b);
  const [dark, pale] = light[0] < light[1] ? ['--ink', '--paper'] : ['--paper', '--ink'];
  return {
    ramp,
    below,
    onCell: (code) => value(bright[code] ? dark : pale),
    onBelow: (code) => value(brightBelow[code] ? dark : pale),
    ink: value('--ink'),
    soft: value('--ink-soft'),
    line: value('--line'),
    card: value('--card'),
    hidden: value('--hidden'),
    mono: value('--mono') || 'monospace',
    sans: value('--sans') || 'sans-serif',
  };
}

export const FOR_FILES = 3; // pixels of a saved picture per CSS pixel

export const screenRatio = () => Math.min(window.devicePixelRatio || 1, 3);

/** Size a canvas and return its context, measured in CSS pixels. */
export function prepare(canvas, width, height, ratio) {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Codes (0..255) -> a small canvas of rows x columns pixels. */
export function bitmap(codes, rows, columns, palette) {
  const small = document.createElement('canvas');
  small.width = columns;
  small.height = rows;
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i += 1) pixels[i] = palette.ramp[codes[i]];
  small.getContext('2d').putImageData(image, 0, 0);
  return small;
}

const measuring = document.createElement('canvas').getContext('2d');

/** Cut a text so that it fits `width` pixels in `font`. */
export function fit(text, width, font) {
  measuring.font = font;
  if (measuring.measureText(text).width <= width) return text;
  const letters = Array.from(text);
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measuring.measureText(`${letters.slice(0, middle).join('')}\u2026`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join('')}\u2026`;
}

/** The widest of some texts in `font`, in pixels. */
export function widest(texts, font) {
  measuring.font = font;
  return texts.reduce((most, text) => Math.max(most, measuring.measureText(text).width), 0);
}
