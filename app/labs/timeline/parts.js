// Timeline: the grid of epochs, the growth of contexts, lengths, and the input formats.
import { node } from '../../parts/svg.js';

const { element, format, heading, t, texts } = window.Cloze;

const CASES = texts({ M: 'the model sees [MASK]', R: 'it sees another piece', K: 'it sees the piece itself' });
export const REGIMES = texts({ static: 'Static', copies: 'Copies', dynamic: 'Dynamic' });
const LABELS = { 0: t`next`, 1: t`random` };
const TEXT = texts({
  epoch: 'epoch', again: 'this mask was seen before', fresh: 'a new mask', asked: 'asked', contexts: 'contexts', longer: 'longer', mean: 'mean', words: 'Words',
  published: 'Published share', axis: 'contexts per piece, mean', chart: 'Mean contexts per piece over the epochs; the table above has the last values',
  compared: ['Regime', 'Different masked inputs', 'Pieces ever asked', 'Times asked, mean', 'Contexts per piece, mean'],
});

/** A row per epoch, a column per piece; a mark shows where a copy comes round again. */
export function grid(answer, regime) {
  const { tokens, draws, regimes } = answer;
  const { visits, asked, contexts } = regimes[regime];
  const seen = new Set();
  const head = element('tr', {}, element('th', { scope: 'col', class: 'tl-corner', text: TEXT.epoch }),
    ...tokens.map((token) => element('th', { scope: 'col', class: token.special ? 'special' : '' }, heading(token.text))));
  const rows = visits.map((number, epoch) => {
    const draw = draws[number];
    const again = seen.has(number);
    seen.add(number);
    return element('tr', { class: again ? 'again' : '', 'data-epoch': epoch + 1, 'data-draw': number, 'data-cases': draw.cases },
      element('th', { scope: 'row', title: again ? TEXT.again : TEXT.fresh }, element('span', { text: epoch + 1 }), again ? element('small', { text: ` = ${number + 1}` }) : null),
      ...tokens.map((token, at) => {
        const letter = draw.cases[at];
        if (letter === '.') return element('td', { class: token.special ? 'special' : '' });
        const other = draw.random[at];
        const times = draw.times?.[at];
        return element('td', {
          class: `case-${letter}`, title: [t`epoch ${epoch + 1}`, token.text, CASES[letter], other, times && t`drawn ${times} times`].filter(Boolean).join(' · '),
        }, letter, times ? element('sup', { text: times }) : null);
      }));
  });
  const count = (text, values) => element('tr', {}, element('th', { scope: 'row', text }),
    ...values.map((value, at) => element('td', { class: tokens[at].special ? 'special' : '', text: tokens[at].special ? '' : value })));
  return element('table', { class: 'tl-grid' }, element('thead', {}, head), element('tbody', {}, ...rows),
    element('tfoot', {}, count(TEXT.asked, asked), count(TEXT.contexts, contexts)));
}

/** What the three regimes come to. */
export function comparison(answer) {
  const plain = answer.tokens.filter((token) => !token.special).map((token) => token.position);
  const mean = (values) => plain.reduce((sum, at) => sum + values[at], 0) / plain.length;
  return element('table', { class: 'tl-table' },
    element('thead', {}, element('tr', {}, ...TEXT.compared.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...Object.entries(answer.regimes).map(([name, found]) => element('tr', { 'data-regime': name },
      element('th', { scope: 'row' }, element('span', { class: `tl-key ${name}`, 'aria-hidden': 'true' }), REGIMES[name]),
      element('td', { text: found.inputs }),
      element('td', { text: t`${plain.filter((at) => found.asked[at]).length} of ${plain.length}` }),
      element('td', { text: mean(found.asked).toFixed(2) }), element('td', { 'data-number': 'contexts', text: mean(found.contexts).toFixed(2) })))));
}

/** Mean contexts per piece over the epochs, a line per regime. */
export function growth(answer) {
  const lines = Object.entries(answer.regimes);
  const epochs = answer.draws.length;
  const most = Math.max(1, ...lines.map(([, { growth: values }]) => values[epochs - 1]));
  const [width, height, left, bottom] = [520, 190, 40, 26];
  const x = (n) => left + ((width - left - 96) * n) / Math.max(1, epochs - 1);
  const y = (value) => 10 + (height - bottom - 10) * (1 - value / most);
  const text = (at, up, words, anchor = 'start') => node('text', { x: at, y: up, 'text-anchor': anchor }, words);
  const ends = [];
  const names = lines.map(([name, { growth: values }]) => {
    let up = y(values[epochs - 1]) + 4;
    while (ends.some((other) => Math.abs(other - up) < 15)) up += 15;
    ends.push(up);
    return text(x(epochs - 1) + 8, up, REGIMES[name]);
  });
  return node('svg', { viewBox: `0 0 ${width} ${height + 18}`, class: 'tl-growth', role: 'img', 'aria-label': TEXT.chart },
    node('path', { class: 'axis', d: `M${left} 10V${height - bottom}H${x(epochs - 1)}` }),
    text(left + 8, 16, TEXT.axis), text(left - 6, 16, most.toFixed(1), 'end'), text(left - 6, height - bottom, '0', 'end'),
    text(left, height - 6, '1'), text(x(epochs - 1), height - 6, t`epoch ${epochs}`, 'end'),
    ...lines.map(([name, { growth: values }]) => node('path', { class: `line ${name}`, d: values.map((value, n) => `${n ? 'L' : 'M'}${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join('') })),
    ...names);
}

/** Shares of lengths: published, drawn, found. */
export function histogram({ published, drawn, found, longer, means, counts }) {
  const most = Math.max(...published, ...drawn, ...found, longer);
  const bar = (value, kind) => {
    const fill = element('span', { class: `tl-fill ${kind}` });
    fill.style.width = `${(100 * value) / most}%`;
    return element('td', { 'data-share': value }, element('span', { class: 'tl-value', text: value ? format.percent(value) : '0' }), element('span', { class: 'tl-bar', 'aria-hidden': 'true' }, fill));
  };
  const none = () => element('td', { text: '–' });
  return element('table', { class: 'tl-table tl-lengths' },
    element('thead', {}, element('tr', {}, ...[TEXT.words, TEXT.published, t`Drawn (${format.count(counts.drawn)})`, t`Runs found (${format.count(counts.found)})`].map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...published.map((share, n) => element('tr', {}, element('th', { scope: 'row', text: n + 1 }), bar(share, 'published'), bar(drawn[n], 'drawn'), bar(found[n], 'found'))),
      element('tr', {}, element('th', { scope: 'row', text: TEXT.longer }), none(), none(), bar(longer, 'found'))),
    element('tfoot', {}, element('tr', {}, element('th', { scope: 'row', text: TEXT.mean }), ...['published', 'drawn', 'found'].map((name) => element('td', { text: means[name].toFixed(3) })))));
}

/** One format: a bar per example, a block per run of a document. */
export function formatCard(entry, length) {
  const facts = [t`${entry.examples} examples`, t`${entry.mean.toFixed(1)} pieces each`, t`${format.percent(entry.filled)} of the length used`];
  if (entry.random !== null) facts.push(t`${format.percent(entry.random)} random pairs`);
  if (entry.name === 'full_sentences') facts.push(t`${entry.crossing} cross the end of a document`);
  return element('section', { class: 'tl-format', 'data-format': entry.name },
    element('h4', { text: entry.title }), element('p', { class: 'tl-note', text: facts.join(' · ') }),
    element('ol', { 'aria-label': entry.title }, ...entry.shown.map((example) => {
      const blocks = example.parts.map((part) => {
        const block = element('span', {
          class: `tl-run doc-${part.document % 6}${part.segment ? ' second' : ''}`, 'data-document': part.document + 1, 'data-pieces': part.pieces,
          title: [t`document ${part.document + 1}`, t`${part.pieces} pieces`, part.text].join(' · '),
        }, element('b', { text: part.document + 1 }), element('bdi', { text: part.text }));
        block.style.width = `${(100 * part.pieces) / length}%`;
        return block;
      });
      return element('li', {}, element('span', { class: 'tl-strip' }, ...blocks),
        element('span', { class: `tl-label${example.label === 1 ? ' random' : ''}`, text: `${example.length}${example.label === null ? '' : ` ${LABELS[example.label]}`}` }));
    })),
    entry.examples > entry.shown.length ? element('p', { class: 'tl-note', text: t`and ${entry.examples - entry.shown.length} more` }) : null);
}
