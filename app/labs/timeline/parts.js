// Timeline: the grid of epochs, the growth of contexts, lengths, and the input formats.
import { tableOf } from '../../parts/plain.js';

const { element, format, heading, t, texts } = window.Cloze;

const CASES = texts({ M: 'the model sees [MASK]', R: 'it sees another piece', K: 'it sees the piece itself' });
export const REGIMES = texts({ static: 'Static', copies: 'Copies', dynamic: 'Dynamic' });
const LABELS = { 0: t`next`, 1: t`random` };
const TEXT = texts({
  epoch: 'epoch', again: 'this mask was seen before', fresh: 'a new mask', asked: 'asked', contexts: 'contexts',
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
  const two = (value) => [value, value.toFixed(2)];
  return tableOf({
    columns: TEXT.compared,
    rows: Object.entries(answer.regimes).map(([name, found]) => [REGIMES[name], found.inputs,
      t`${plain.filter((at) => found.asked[at]).length} of ${plain.length}`, two(mean(found.asked)), two(mean(found.contexts))]),
  });
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
