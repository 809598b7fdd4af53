// Spans: the picture of a span, the answers of both heads, the law of lengths. Numbers come from Python.
import { node } from '../../parts/svg.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  heads: { masked_token: 'Masked-token head', span_boundary: 'Span-boundary head' },
  original: 'The word of your sentence',
  none: 'Never asked in pretraining.',
  gap: 'Gap in the text',
  sentence: 'The span in its sentence', boundary: 'boundary token',
});
export const HEADS = ['masked_token', 'span_boundary'];
export const nats = (value) => (value === null || value === undefined ? '–' : value.toFixed(2));
const AROUND = 4;
const MOST = 32;

function lines(edges, places, size) {
  const paths = places.flatMap((place) => edges.map((edge) => node('path', { d: `M${edge.x} ${edge.y}L${place.x} ${place.y}` })));
  return node('svg', { class: 'sp-lines', 'aria-hidden': 'true', width: size.width, height: size.height }, ...paths);
}

function middle(node, host, bottom) {
  const [a, b] = [node.getBoundingClientRect(), host.getBoundingClientRect()];
  return { x: a.left + a.width / 2 - b.left, y: (bottom ? a.bottom : a.top) - b.top };
}

/** The span between its neighbours: lines from both boundary tokens to each place. Returns {root, fit}. */
export function picture(answer) {
  const { tokens, told } = answer;
  const { start, stop, edge } = answer.spans[answer.run];
  const pieces = new Map((told?.pieces ?? []).map((piece) => [piece.position, piece]));
  const shown = [];
  for (let n = Math.max(0, start - AROUND); n < Math.min(tokens.length, stop + AROUND); n += 1) {
    if (n < start + MOST || n >= stop) shown.push(n);
  }
  const column = (n) => {
    const token = tokens[n];
    const inside = n >= start && n < stop;
    const boundary = !edge && (n === start - 1 || n === stop);
    const piece = pieces.get(n);
    const kind = inside ? 'hidden' : boundary ? 'boundary' : token.special ? 'special' : '';
    const chance = piece?.span_boundary?.original?.probability;
    return element('li', { class: `sp-column ${kind}`, 'data-position': n },
      element('bdi', { class: 'sp-was', text: inside && !token.gap ? token.text : '' }),
      element('span', { class: 'sp-token' }, element('bdi', { text: inside ? piece?.seen ?? '[MASK]' : token.text }),
        boundary ? element('span', { class: 'sp-spoken', text: TEXT.boundary }) : null),
      inside ? element('span', { class: 'sp-place', text: n - start }) : null,
      inside && piece?.span_boundary ? element('span', { class: 'sp-told' },
        element('bdi', { text: piece.span_boundary.candidates[0].display }),
        element('small', { text: format.percent(piece.span_boundary.candidates[0].probability), title: chance === undefined ? null : format.exact(chance) })) : null);
  };
  const row = element('ol', { class: 'sp-columns' },
    shown[0] > 0 ? element('li', { class: 'sp-more', text: '…' }) : null,
    ...shown.map(column),
    shown.at(-1) < tokens.length - 1 ? element('li', { class: 'sp-more', text: '…' }) : null);
  const canvas = element('div', { class: 'sp-canvas' }, row);
  const root = element('div', { class: 'sp-stage', tabindex: '0', role: 'region', 'aria-label': TEXT.sentence }, canvas);
  const fit = () => {
    canvas.querySelector('.sp-lines')?.remove();
    const edges = [...row.querySelectorAll('.boundary .sp-token')].map((node) => middle(node, row, true));
    const places = [...row.querySelectorAll('.sp-place')].map((node) => middle(node, row, false));
    if (edges.length) canvas.append(lines(edges, places, { width: row.scrollWidth, height: row.clientHeight }));
  };
  const frame = element('div', { class: 'sp-frame' }, root);
  const mark = () => {
    frame.classList.toggle('more-before', root.scrollLeft > 4);
    frame.classList.toggle('more-after', root.scrollLeft + root.clientWidth < root.scrollWidth - 4);
  };
  root.addEventListener('scroll', mark, { passive: true });
  /** Begin with the span in sight where the picture is wider than the page. */
  const reveal = () => {
    const first = row.querySelector('.boundary') ?? row.querySelector('.hidden');
    // A whole neighbour may stand before it; where one is cut, or more are out of sight, the edge fades.
    if (row.scrollWidth > root.clientWidth) root.scrollLeft = first.offsetLeft - 28;
    mark();
  };
  return { root: frame, fit, reveal, row };
}

function candidateRow(candidate, own, rank) {
  const fill = element('span', { class: 'fill' });
  fill.style.transform = `scaleX(${candidate.probability})`;
  return element('div', { class: `candidate${own ? ' is-original' : ''}`, title: own ? TEXT.original : null, 'data-id': candidate.id },
    element('span', { class: 'rank', text: rank }), element('bdi', { class: 'word', text: candidate.display }),
    element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
    element('span', { class: 'share', title: format.exact(candidate.probability), text: format.percent(candidate.probability) }));
}

function answerOf(head, said) {
  const parts = [element('h5', { text: TEXT.heads[head] })];
  if (!said) parts.push(element('p', { class: 'sp-small', text: TEXT.none }));
  else {
    const { candidates, original } = said;
    parts.push(...candidates.map((each) => candidateRow(each, each.id === original?.id, each.rank)));
    if (original && !candidates.some((each) => each.id === original.id)) parts.push(candidateRow(original, true, format.count(original.rank)));
    if (said.loss !== null) parts.push(element('p', { class: 'sp-loss', 'data-loss': said.loss, text: t`−log P = ${nats(said.loss)} nats` }));
  }
  return element('div', { class: `sp-answer ${head}`, 'data-head': head }, ...parts);
}

/** A place: what both heads expect there, the loss of each and their sum. */
export function placeCard(piece, token) {
  return element('section', { class: 'sp-card', 'data-place': piece.place },
    element('h4', {}, element('span', { class: 'sp-place', text: piece.place }),
      element('bdi', { text: token.gap ? TEXT.gap : token.text })),
    element('div', { class: 'sp-answers' }, ...HEADS.map((head) => answerOf(head, piece[head]))),
    piece.loss === null ? null : element('p', { class: 'sp-sum', text: t`Loss of this place: ${nats(piece.loss)} nats` }));
}

const th = (text, scope = 'col') => element('th', { scope, text });
const chanceCell = (value) => element('td', { text: value === null || value === undefined ? '–' : format.percent(value), title: value === null || value === undefined ? null : format.exact(value) });

/** What changes when something else stands inside: each head before and after. */
export function changes(told, tokens) {
  const own = (piece, head) => piece[head]?.original?.probability;
  return element('table', { class: 'sp-table' },
    element('caption', { text: t`Probability of the word of the text, with [MASK] inside and with what stands there now` }),
    element('thead', {}, element('tr', {}, th(t`Word`), th(t`The model sees`),
      ...HEADS.flatMap((head) => [th(t`${TEXT.heads[head]}, [MASK]`), th(t`${TEXT.heads[head]}, now`)]))),
    element('tbody', {}, ...told.pieces.map((piece) => element('tr', { 'data-place': piece.place },
      element('th', { scope: 'row' }, element('bdi', { text: tokens[piece.position].text })),
      element('td', {}, element('bdi', { text: piece.seen })),
      ...HEADS.flatMap((head) => [chanceCell(piece.base[head]), chanceCell(own(piece, head))])))));
}

/** Every number of the cards once more. */
export function twin(told, tokens) {
  return element('table', { class: 'sp-table' },
    element('caption', { text: t`Every hidden place` }),
    element('thead', {}, element('tr', {}, th(t`Place`), th(t`Word`),
      ...HEADS.flatMap((head) => [th(TEXT.heads[head]), th(t`Rank`), th(t`Loss in nats`)]), th(t`Sum`))),
    element('tbody', {}, ...told.pieces.map((piece) => element('tr', {},
      element('th', { scope: 'row', text: piece.place }), element('td', {}, element('bdi', { text: tokens[piece.position].text })),
      ...HEADS.flatMap((head) => {
        const said = piece[head];
        return [chanceCell(said?.original?.probability), element('td', { text: said?.original ? format.count(said.original.rank) : '–' }), element('td', { text: nats(said?.loss) })];
      }),
      element('td', { text: nats(piece.loss) })))));
}
