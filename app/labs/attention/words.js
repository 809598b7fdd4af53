// Attention: numbers and words that both parts share.
const { apart, t } = window.Cloze;

const SPACE = '\u00a0';

/** base64 text -> bytes. */
export function toBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
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

export const quote = (text) => `\u201c${apart(text)}\u201d`;
