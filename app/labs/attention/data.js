// Attention: numbers and words shared by the views. No DOM in here.

const { t } = window.Cloze;

export const MEAN = null; // "the mean over" in place of a layer or head number

const SPACE = '\u00a0';

/** base64 text -> bytes. */
export function toBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The weights of one head as sent by viz.head_numbers: {length, values: Float32Array of L * L}. */
export function decodeHead(numbers) {
  const bytes = toBytes(numbers.data);
  const { length, kind } = numbers;
  if (kind === 'float32') return { length, kind, values: new Float32Array(bytes.buffer) };
  const codes = new Uint16Array(bytes.buffer);
  const values = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i += 1) values[i] = (codes[i] / 65535) ** 2;
  return { length, kind, values };
}

/** A share in [0, 1] as people read it; the same words as viz.percent. */
export function percent(weight) {
  const value = weight * 100;
  if (weight > 0 && value < 0.005) return t`under ${`0.01${SPACE}%`}`;
  let text = '0';
  if (value >= 99.95) text = '100';
  else if (value >= 99.5) text = Math.min(value, 99.9).toFixed(1);
  else if (value >= 9.95) text = value.toFixed(0);
  else if (value >= 0.095) text = value.toFixed(1);
  else if (value >= 0.005) text = value.toFixed(2);
  return `${text}${SPACE}%`;
}

export const quote = (text) => `\u201c${text}\u201d`;

/** "Layer 3 · Head 2", counted from 1 as people do. */
export function cellName(layer, head) {
  if (layer === MEAN) return t`Mean over all heads`;
  return head === MEAN ? t`Layer ${layer + 1} · Mean` : t`Layer ${layer + 1} · Head ${head + 1}`;
}

/** The number of a cell in the overview's order (see viz/attention.py). */
export function cellIndex(layer, head, layers, heads) {
  if (layer === MEAN) return layers * (heads + 1);
  return layer * (heads + 1) + (head === MEAN ? heads : head);
}

/** The positions to show. */
export function shownPositions(tokens, hide) {
  const kept = [];
  tokens.forEach((token, position) => {
    if (!(hide && token.special)) kept.push(position);
  });
  return kept;
}

/** What one token looks at (side "from") or which tokens look at it ("to"), strongest first. */
export function linksOf(head, position, side, shown) {
  const links = shown.map((other) => ({
    other,
    weight: side === 'from' ? head.values[position * head.length + other] : head.values[other * head.length + position],
  }));
  return links.sort((a, b) => b.weight - a.weight);
}

/** '"capital" looks at france 41 %, of 12 %.' */
export function tokenSentence(tokens, head, position, side, shown) {
  const all = linksOf(head, position, side, shown);
  const top = all.filter((link, i) => i === 0 || (i < 4 && link.weight >= 0.01));
  // A bare full stop or comma would read as the sentence's own.
  const plain = (label) => (/[\p{L}\p{N}]/u.test(label) ? label : quote(label));
  const parts = top.map((link) => `${plain(tokens[link.other].label)} ${percent(link.weight)}`);
  const who = quote(tokens[position].label);
  return side === 'from' ? t`${who} looks at ${parts.join(', ')}.` : t`${who} is looked at by ${parts.join(', ')}.`;
}

/** What a token's label stands for, for its tooltip. */
export function tokenTitle({ label, original, position }) {
  return original === null ? t`${label}, token ${position}` : t`${label} in place of ${quote(original)}, token ${position}`;
}

/** The links of at least `least`, strongest first, at most `most`; and how many there were. */
export function strongestLinks(head, shown, least, most) {
  const links = [];
  for (const source of shown) {
    for (const target of shown) {
      const weight = head.values[source * head.length + target];
      if (weight >= least) links.push({ source, target, weight });
    }
  }
  links.sort((a, b) => b.weight - a.weight);
  return { links: links.slice(0, most), count: links.length };
}

/** The largest weight among the shown tokens. */
export function largest(head, shown) {
  let top = 0;
  for (const row of shown) {
    for (const column of shown) top = Math.max(top, head.values[row * head.length + column]);
  }
  return top;
}
