// Attention: one head as lines from token to token. Pointing at a token, or focusing it, leaves only its own
// links; a click holds it.

import { linksOf, percent, quote, strongestLinks, tokenSentence, tokenTitle } from './data.js';
import { fit, widest } from '../../parts/paint.js';

const { t, texts } = window.Cloze;
const TEXT = texts({ from: 'from', to: 'to', looking: 'Tokens that look', lookedAt: 'Tokens looked at' });
const SVG = 'http://www.w3.org/2000/svg';
const MOST_LINES = 600;
const MOST_ALONE = 120;
const LEAST = 0.01;
const LEAST_ALONE = 0.002;
const TOP = 26;
const NUMBER = 46; // pixels that a number takes
const PAGE = 8; // tokens that Page Up and Page Down move

function make(name, attributes, parent) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent?.append(node);
  return node;
}

export function createLines(host, { onToken }) {
  const svg = host.querySelector('svg');
  let view = null;
  let place = null;
  let labels = { from: new Map(), to: new Map() };
  let held = null; // {side, position} after a click
  let current = null;
  let stop = null; // the label that Tab reaches
  let changed = []; // labels that an isolated token has changed

  function layout() {
    const { tokens, shown, palette } = view;
    const width = Math.max(240, host.clientWidth);
    const row = shown.length > 32 ? 18 : shown.length > 20 ? 21 : 25;
    const size = shown.length > 32 || width < 340 ? 12.5 : 13.5;
    const font = `${size}px ${palette.mono}`;
    const want = widest(shown.slice(0, 400).map((position) => tokens[position].label), font) + 14;
    const column = Math.min(Math.max(want, 48), width * 0.36);
    const top = (index) => TOP + row * (index + 0.5);
    return { width, row, size, font, column, left: column, right: width - column, y: top, height: TOP + row * shown.length + 6 };
  }

  /** `clear` leaves room for a number at the "from" or the "to" end. */
  function curve(from, to, clear) {
    const start = place.left + (clear === 'from' ? NUMBER : 4);
    const end = place.right - (clear === 'to' ? NUMBER : 4);
    const bend = (end - start) * 0.45;
    return `M${start} ${from}C${start + bend} ${from} ${end - bend} ${to} ${end} ${to}`;
  }

  function path(parent, source, target, weight, clear) {
    make('path', {
      d: curve(place.y(view.index.get(source)), place.y(view.index.get(target)), clear),
      'stroke-width': (0.6 + 4.6 * weight).toFixed(2),
      'stroke-opacity': (parent.classList.contains('attn-links-alone') ? 0.2 + 0.8 * Math.sqrt(weight) : 0.05 + 0.95 * weight).toFixed(3),
    }, parent);
  }

  function draw(next) {
    const started = performance.now();
    view = { ...next, index: new Map(next.shown.map((position, i) => [position, i])) };
    place = layout();
    svg.replaceChildren();
    changed = [];
    svg.setAttribute('viewBox', `0 0 ${place.width} ${place.height}`);
    svg.setAttribute('width', place.width);
    svg.setAttribute('height', place.height);
    make('g', { class: 'attn-links', 'aria-hidden': 'true' }, svg);
    make('g', { class: 'attn-links attn-links-alone', 'aria-hidden': 'true' }, svg);
    caption(TEXT.from, place.left - 8, 'end');
    caption(TEXT.to, place.right + 8, 'start');
    const { links, count } = strongestLinks(view.head, view.shown, LEAST, MOST_LINES);
    // The strongest come last, on top.
    for (const link of links.reverse()) path(svg.firstChild, link.source, link.target, link.weight);
    labels = { from: column('from'), to: column('to') };
    if (held && !view.index.has(held.position)) held = null;
    if (!stop || !labels[stop.side].has(stop.position)) stop = { side: 'from', position: view.shown[0] };
    labels[stop.side].get(stop.position)?.setAttribute('tabindex', '0');
    isolate(held);
    svg.dataset.ms = (performance.now() - started).toFixed(1);
    return count > links.length ? count - links.length : 0;
  }

  function caption(text, x, anchor) {
    make('text', { class: 'attn-caption', x, y: 12, 'text-anchor': anchor }, svg).textContent = text;
  }

  function column(side) {
    const found = new Map();
    const isFrom = side === 'from';
    const parent = make('g', { class: `attn-column-${side}`, role: 'group', 'aria-label': isFrom ? TEXT.looking : TEXT.lookedAt }, svg);
    const x = isFrom ? place.left - 8 : place.right + 8;
    view.shown.forEach((position, i) => {
      const token = view.tokens[position];
      const node = make('g', { class: 'attn-token', role: 'button', tabindex: -1, 'aria-pressed': 'false', 'data-side': side, 'data-position': position }, parent);
      node.setAttribute('aria-label', isFrom ? t`${quote(token.label)}, looking` : t`${quote(token.label)}, looked at`);
      if (token.masked) node.classList.add('attn-masked');
      if (token.special) node.classList.add('attn-special');
      make('rect', { x: isFrom ? 0 : place.right, y: place.y(i) - place.row / 2, width: place.column, height: place.row, rx: 4 }, node);
      const text = make('text', { x, y: place.y(i), 'text-anchor': isFrom ? 'end' : 'start', 'dominant-baseline': 'central', 'font-size': place.size }, node);
      text.textContent = fit(token.label, place.column - 12, place.font);
      make('title', {}, node).textContent = tokenTitle(token);
      joint(parent, i, isFrom ? place.left - 3 : place.right + 3);
      found.set(position, node);
    });
    return found;
  }

  /** A thin line between pieces of one word. */
  function joint(parent, i, x) {
    const [token, next] = [view.tokens[view.shown[i]], view.tokens[view.shown[i + 1]]];
    if (!next || token.word === null || token.word !== next.word) return;
    make('path', { class: 'attn-joint', d: `M${x} ${place.y(i) - 4}V${place.y(i + 1) + 4}` }, parent);
  }

  /** Show only one token's links, or everything again when `token` is null. */
  function isolate(token) {
    current = token;
    const alone = svg.querySelector('.attn-links-alone');
    alone?.replaceChildren();
    svg.classList.toggle('attn-isolated', token !== null);
    svg.classList.toggle('attn-looking', token?.side === 'from');
    for (const node of changed) {
      node.classList.remove('attn-chosen');
      node.setAttribute('aria-pressed', 'false');
      node.style.opacity = '';
    }
    changed = [];
    if (held) {
      const node = labels[held.side].get(held.position);
      node.setAttribute('aria-pressed', 'true');
      changed.push(node);
    }
    if (token) single(token, alone);
    onToken(token && tokenSentence(view.tokens, view.head, token.position, token.side, view.shown), token);
  }

  function single({ side, position }, alone) {
    const other = side === 'from' ? 'to' : 'from';
    const chosen = labels[side].get(position);
    chosen.classList.add('attn-chosen');
    changed.push(chosen);
    const links = linksOf(view.head, position, side, view.shown);
    links.forEach((link, rank) => {
      if (link.weight >= LEAST) {
        const node = labels[other].get(link.other);
        node.style.opacity = Math.min(1, 0.6 + link.weight * 2);
        changed.push(node);
        number(alone, other, link);
      }
      if (rank >= MOST_ALONE || link.weight < LEAST_ALONE) return;
      const [source, target] = side === 'from' ? [position, link.other] : [link.other, position];
      path(alone, source, target, link.weight, link.weight >= LEAST && other);
    });
  }

  function number(parent, side, { other, weight }) {
    const isFrom = side === 'from';
    make('text', {
      class: 'attn-number',
      x: isFrom ? place.left + 6 : place.right - 6,
      y: place.y(view.index.get(other)),
      'text-anchor': isFrom ? 'start' : 'end',
      'dominant-baseline': 'central',
      opacity: Math.min(1, 0.6 + weight * 2),
    }, parent).textContent = percent(weight);
  }

  const tokenOf = (target) => {
    const node = target.closest?.('.attn-token');
    return node && { side: node.dataset.side, position: Number(node.dataset.position) };
  };
  const same = (a, b) => a?.side === b?.side && a?.position === b?.position;

  function focusOn(side, row) {
    const position = view.shown[Math.max(0, Math.min(row, view.shown.length - 1))];
    labels[stop.side].get(stop.position)?.setAttribute('tabindex', '-1');
    stop = { side, position };
    const node = labels[side].get(position);
    node.setAttribute('tabindex', '0');
    node.focus({ preventScroll: false });
  }

  svg.addEventListener('pointerover', (event) => {
    const token = tokenOf(event.target);
    if (token && !same(token, current)) isolate(token);
  });
  svg.addEventListener('pointerleave', () => view && isolate(held));
  svg.addEventListener('focusin', (event) => {
    const token = tokenOf(event.target);
    if (!token) return;
    labels[stop.side].get(stop.position)?.setAttribute('tabindex', '-1');
    stop = token;
    const node = labels[token.side].get(token.position);
    node.setAttribute('tabindex', '0');
    node.setAttribute('aria-label', tokenSentence(view.tokens, view.head, token.position, token.side, view.shown));
    if (!same(token, current)) isolate(token);
  });
  svg.addEventListener('focusout', () => isolate(held));
  svg.addEventListener('click', (event) => {
    const token = tokenOf(event.target);
    hold(token && !same(token, held) ? token : null);
  });
  svg.addEventListener('keydown', (event) => {
    const token = tokenOf(event.target);
    if (!token) return;
    const row = view.index.get(token.position);
    const moves = {
      ArrowUp: [token.side, row - 1],
      ArrowDown: [token.side, row + 1],
      ArrowLeft: ['from', row],
      ArrowRight: ['to', row],
      PageUp: [token.side, row - PAGE],
      PageDown: [token.side, row + PAGE],
      Home: [token.side, 0],
      End: [token.side, view.shown.length - 1],
    };
    if (moves[event.key]) focusOn(...moves[event.key]);
    else if (event.key === 'Enter' || event.key === ' ') hold(same(token, held) ? null : token);
    else if (event.key === 'Escape' && held) hold(null);
    else return;
    event.preventDefault();
  });

  function hold(token) {
    held = token;
    isolate(token);
  }

  return { draw, isolate, held: () => held, release: () => { held = null; }, current: () => current };
}
