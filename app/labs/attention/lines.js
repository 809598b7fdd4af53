// Attention: one head as lines from token to token. Pointing at a token, or focusing it, leaves only its own links; a click holds it.
import { BROKEN, downloadDrawing, downloadPicture, drawnSvg, titledDrawing } from '../../parts/export.js';
import { fit, readPalette, widest } from '../../parts/paint.js';
import { node } from '../../parts/svg.js';
import { percent, quote, toBytes } from './words.js';

const { element, phrase, t, texts } = window.Cloze;
const TEXT = texts({
  from: 'from', to: 'to', looking: 'Tokens that look', lookedAt: 'Tokens looked at', svg: 'Lines, SVG', png: 'Lines, PNG',
  label: 'Lines from the tokens that look, left, to the tokens looked at, right. Arrow keys move, Enter holds a token, Escape lets go.',
  lines: 'Lines from 1 % up. Point at a token for its own numbers, click to hold it.',
});
const MOST_LINES = 600;
const MOST_ALONE = 120;
const LEAST = 0.01;
const LEAST_ALONE = 0.002;
const TOP = 26;
const NUMBER = 46; // pixels that a number takes
const PAGE = 8; // tokens that Page Up and Page Down move

/** The weights as viz.head_numbers sends them: L * L numbers. */
function weightsOf({ data, kind }) {
  const bytes = toBytes(data);
  return kind === 'float32' ? new Float32Array(bytes.buffer) : Float32Array.from(new Uint16Array(bytes.buffer), (code) => (code / 65535) ** 2);
}

export function mount(view) {
  const svg = node('svg', { role: 'group', 'aria-label': TEXT.label });
  const host = element('div', { class: 'lines-scroll' }, svg);
  const words = element('p', { class: 'lines-words', 'aria-live': 'polite' });
  const save = (text, act) => element('button', { type: 'button', class: 'quiet', text, onclick: act });
  view.root.replaceChildren(host, words, element('p', { class: 'files' },
    save(TEXT.svg, () => downloadDrawing('attention-lines.svg', file())), save(TEXT.png, () => downloadPicture('attention-lines.png', file()).catch(() => { words.textContent = BROKEN; }))));
  view.root.hidden = true;
  let data = null; // {title, tokens, weights}
  let palette = null;
  let place = null;
  let labels = { from: [], to: [] };
  let held = null; // {side, at} after a click
  let current = null;
  let stop = { side: 'from', at: 0 }; // the label that Tab reaches
  let told = ''; // under the lines when no token is pointed at

  const weight = (from, to) => data.weights[from * data.tokens.length + to];
  const labelAt = ({ side, at }) => labels[side][at];
  const same = (a, b) => a?.side === b?.side && a?.at === b?.at;

  function layout() {
    const { tokens } = data;
    const width = Math.max(240, host.clientWidth);
    const row = tokens.length > 32 ? 18 : tokens.length > 20 ? 21 : 25;
    const size = tokens.length > 32 || width < 340 ? 12.5 : 13.5;
    const font = `${size}px ${palette.mono}`;
    const want = widest(tokens.slice(0, 400).map(({ label }) => label), font) + 14;
    const column = Math.min(Math.max(want, 48), width * 0.36);
    return { width, row, size, font, column, left: column, right: width - column, y: (at) => TOP + row * (at + 0.5), height: TOP + row * tokens.length + 6 };
  }

  /** `clear` leaves room for a number at the "from" or the "to" end. */
  function path(parent, { from, to, share }, clear) {
    const start = place.left + (clear === 'from' ? NUMBER : 4);
    const end = place.right - (clear === 'to' ? NUMBER : 4);
    const bend = (end - start) * 0.45;
    const [above, below] = [place.y(from), place.y(to)];
    const alone = parent.classList.contains('alone');
    parent.append(node('path', {
      d: `M${start} ${above}C${start + bend} ${above} ${end - bend} ${below} ${end} ${below}`,
      'stroke-width': (0.6 + 4.6 * share).toFixed(2),
      'stroke-opacity': (alone ? 0.2 + 0.8 * Math.sqrt(share) : 0.05 + 0.95 * share).toFixed(3),
    }));
  }

  /** The strongest links of at least LEAST, and how many there are. */
  function links() {
    const found = [];
    data.tokens.forEach((_, from) => data.tokens.forEach((__, to) => {
      if (weight(from, to) >= LEAST) found.push({ from, to, share: weight(from, to) });
    }));
    found.sort((a, b) => b.share - a.share);
    return [found.slice(0, MOST_LINES), found.length];
  }

  function draw() {
    if (!data || !host.clientWidth) return;
    palette = readPalette(view.root);
    place = layout();
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${place.width} ${place.height}`, width: place.width, height: place.height })) svg.setAttribute(name, value);
    const all = node('g', { class: 'links', 'aria-hidden': 'true' });
    const caption = (text, x, anchor) => node('text', { class: 'caption', x, y: 12, 'text-anchor': anchor }, text);
    const [shown, count] = links();
    for (const link of shown.reverse()) path(all, link); // the strongest come last, on top
    const [pointed, focused] = [current, svg.contains(document.activeElement)];
    labels = { from: [], to: [] };
    svg.replaceChildren(all, node('g', { class: 'links alone', 'aria-hidden': 'true' }),
      caption(TEXT.from, place.left - 8, 'end'), caption(TEXT.to, place.right + 8, 'start'), column('from'), column('to'));
    if (!labelAt(stop)) stop = { side: 'from', at: 0 };
    labelAt(stop).setAttribute('tabindex', '0');
    told = count > shown.length
      ? t`Lines from 1 % up; ${count - shown.length} of the weaker ones are left out. Point at a token for all of its own.` : TEXT.lines;
    isolate([pointed, held].find((token) => token && labelAt(token)) ?? null);
    if (focused) labelAt(stop).focus({ preventScroll: true });
  }

  function column(side) {
    const from = side === 'from';
    const parent = node('g', { class: side, role: 'group', 'aria-label': from ? TEXT.looking : TEXT.lookedAt });
    data.tokens.forEach((token, at) => {
      const y = place.y(at);
      const { label, original, position, word } = token;
      const text = node('text', {
        x: from ? place.left - 8 : place.right + 8, y, 'text-anchor': from ? 'end' : 'start', 'dominant-baseline': 'central', 'font-size': place.size,
      }, fit(label, place.column - 12, place.font));
      const title = node('title', {}, original === null ? t`${label}, token ${position}` : t`${label} in place of ${quote(original)}, token ${position}`);
      const made = node('g', {
        class: `token${token.masked ? ' masked' : token.special ? ' special' : ''}`, role: 'button', tabindex: -1, 'aria-pressed': 'false',
        'aria-label': from ? t`${quote(label)}, looking` : t`${quote(label)}, looked at`,
      }, node('rect', { x: from ? 0 : place.right, y: y - place.row / 2, width: place.column, height: place.row, rx: 4 }), text, title);
      labels[side].push(made);
      parent.append(made);
      // A thin line between pieces of one word.
      const x = from ? place.left - 3 : place.right + 3;
      if (word !== null && word === data.tokens[at + 1]?.word) parent.append(node('path', { class: 'joint', d: `M${x} ${y - 4}V${place.y(at + 1) + 4}` }));
    });
    return parent;
  }

  // ---- one token -------------------------------------------------------------------------------

  /** What a token looks at (side "from") or which tokens look at it, strongest first. */
  function linksOf({ side, at }) {
    const found = data.tokens.map((_, other) => (side === 'from'
      ? { other, from: at, to: other, share: weight(at, other) } : { other, from: other, to: at, share: weight(other, at) }));
    return found.sort((a, b) => b.share - a.share);
  }

  /** '“capital” looks at “france” 41 %, “of” 12 %.' */
  function sentenceOf(token) {
    const top = linksOf(token).filter(({ share }, n) => n === 0 || (n < 4 && share >= LEAST));
    const parts = top.map(({ other, share }) => `${quote(data.tokens[other].label)} ${percent(share)}`);
    const who = quote(data.tokens[token.at].label);
    return token.side === 'from' ? t`${who} looks at ${parts.join(', ')}.` : t`${who} is looked at by ${parts.join(', ')}.`;
  }

  /** Show only one token's links, or everything again when `token` is null. */
  function isolate(token) {
    current = token;
    const alone = svg.querySelector('.alone');
    alone.replaceChildren();
    svg.setAttribute('class', token ? `isolated ${token.side === 'from' ? 'looking' : ''}` : '');
    for (const each of [...labels.from, ...labels.to]) {
      each.classList.remove('chosen');
      each.setAttribute('aria-pressed', 'false');
      each.style.opacity = '';
    }
    if (held && labelAt(held)) labelAt(held).setAttribute('aria-pressed', 'true');
    if (token) single(token, alone);
    words.textContent = token ? sentenceOf(token) : told;
  }

  function single(token, alone) {
    const other = token.side === 'from' ? 'to' : 'from';
    labelAt(token).classList.add('chosen');
    linksOf(token).forEach((link, rank) => {
      const seen = link.share >= LEAST;
      const opacity = Math.min(1, 0.6 + link.share * 2);
      if (seen) {
        labels[other][link.other].style.opacity = opacity;
        alone.append(node('text', {
          x: other === 'from' ? place.left + 6 : place.right - 6, y: place.y(link.other), 'text-anchor': other === 'from' ? 'start' : 'end',
          'dominant-baseline': 'central', opacity,
        }, percent(link.share)));
      }
      if (rank < MOST_ALONE && link.share >= LEAST_ALONE) path(alone, link, seen && other);
    });
  }

  function tokenOf({ target }) {
    const found = target.closest?.('.token');
    const side = labels.from.includes(found) ? 'from' : 'to';
    return found && { side, at: labels[side].indexOf(found) };
  }

  function hold(token) {
    held = token;
    isolate(token);
  }

  svg.addEventListener('pointerover', (event) => {
    const token = tokenOf(event);
    if (token && !same(token, current)) isolate(token);
  });
  svg.addEventListener('pointerleave', () => data && isolate(held));
  svg.addEventListener('focusin', (event) => {
    const token = tokenOf(event);
    if (!token) return;
    labelAt(stop).setAttribute('tabindex', '-1');
    stop = token;
    labelAt(token).setAttribute('tabindex', '0');
    if (!same(token, current)) isolate(token);
  });
  svg.addEventListener('focusout', () => isolate(held));
  svg.addEventListener('click', (event) => {
    const token = tokenOf(event);
    hold(token && !same(token, held) ? token : null);
  });
  svg.addEventListener('keydown', (event) => {
    const token = tokenOf(event);
    if (!token) return;
    const { side, at } = token;
    const moves = {
      ArrowUp: [side, at - 1], ArrowDown: [side, at + 1], ArrowLeft: ['from', at], ArrowRight: ['to', at],
      PageUp: [side, at - PAGE], PageDown: [side, at + PAGE], Home: [side, 0], End: [side, Infinity],
    };
    if (moves[event.key]) {
      const [to, row] = moves[event.key];
      labels[to][Math.max(0, Math.min(row, data.tokens.length - 1))].focus();
    } else if (event.key === 'Enter' || event.key === ' ') hold(same(token, held) ? null : token);
    else if (event.key === 'Escape' && held) hold(null);
    else return;
    event.preventDefault();
  });

  /** The lines as they are drawn now, as a drawing that says what it is. */
  function file() {
    const inner = new DOMParser().parseFromString(drawnSvg(svg), 'image/svg+xml').documentElement;
    return titledDrawing(inner, { width: place.width, height: place.height, title: data.title, lines: [words.textContent] });
  }

  function receive() {
    view.root.hidden = !view.value?.tokens;
    if (view.root.hidden) return;
    const { tokens, title } = view.value;
    if (data && String(data.tokens.map(({ label }) => label)) !== String(tokens.map(({ label }) => label))) held = current = null;
    data = { tokens, title: phrase(title), weights: weightsOf(view.value) };
    draw();
  }

  new ResizeObserver(() => { if (place?.width !== Math.max(240, host.clientWidth)) draw(); }).observe(host);
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  document.fonts.ready.then(draw);
  view.onValue(receive);
  receive();
}
