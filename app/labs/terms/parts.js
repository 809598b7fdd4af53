// Terms: tables of predictions, of one row of the maps, of the families.
const { element, format, t, texts } = window.Cloze;

export const NAMES = texts({
  content: 'content to content', c2p: 'content to position', p2c: 'position to content', position: 'content to position', segment: 'content to segment',
});
const TEXT = texts({
  product: 'q·k: contents and positions together', word: 'Word', now: 'Now', before: 'Before', after: 'After', own: 'the word of the text', key: 'Looks at', distance: 'Distance', score: 'score', unseen: 'not seen',
  token: 'Token', variants: { decoder: 'Decoder with positions', no_positions: 'Decoder without positions', no_decoder: 'No decoder' },
  family: 'Family', terms: 'Terms of the score', places: 'Where positions are',
  families: [
    ['q·k: contents and positions together', 'Absolute, added to the pieces at the input: one product q·k for both.'],
    ['content to content, content to position, position to content', 'Relative, one row for each distance, clipped at 512; absolute ones enter in the mask decoder.'],
    ['content to content, content to position, position to content', 'Relative, in logarithmic buckets; the contents’ own projections serve the positions, too.'],
    ['content to content, content to position, content to segment', 'Relative, as sinusoids of the distance; learned biases stand in for the position of the query.'],
  ],
});

/** What a term is called; one product alone holds contents and positions together. */
export const nameOf = (answer, name) => (answer.names.length === 1 ? TEXT.product : NAMES[name]);
const FAMILIES = ['BERT, RoBERTa, ALBERT, SpanBERT, ELECTRA', 'DeBERTa', 'DeBERTa v2, v3', 'XLNet'];

/** A number with the sign that stands for less than nothing, as everywhere on the page. */
export const whole = (value) => String(value).replace('-', '−');
export const number = (value) => (Number.isNaN(value) ? TEXT.unseen : value.toPrecision(4).replace('-', '−'));

function chance(value, rank, kind, label) {
  const fill = element('span', { class: 'ts-fill' });
  fill.style.width = `${value * 100}%`;
  return element('td', { class: `ts-chance ${kind}`, title: format.exact(value), 'data-chance': value, 'data-label': label },
    element('span', { class: 'ts-share', text: format.percent(value) }), element('small', { text: t`rank ${rank}` }),
    element('span', { class: 'ts-bar', 'aria-hidden': 'true' }, fill));
}

const head = (...names) => element('thead', {}, element('tr', {}, ...names.map((text) => element('th', { scope: 'col', text }))));

/** Candidates under several conditions: rows of answer.prediction or answer.decoder; `columns` names those shown. */
export function chances(found, columns) {
  const label = (name) => (columns.length === 1 ? TEXT.now : TEXT[name] ?? TEXT.variants[name]);
  return element('table', { class: columns.length > 2 ? 'ts-chances ts-stack' : 'ts-chances' }, head(TEXT.word, ...columns.map(label)),
    element('tbody', {}, ...found.rows.map((row) => element('tr', { class: row.id === found.own ? 'own' : '', 'data-piece': row.piece },
      element('th', { scope: 'row' }, element('bdi', { text: row.display }), row.id === found.own ? element('small', { text: TEXT.own }) : null),
      ...columns.map((name) => {
        const n = found.columns.indexOf(name);
        return chance(row.chances[n], row.ranks[n], name, label(name));
      })))));
}

/** P(replaced) of every token in both passes. */
export function verdicts(answer, changed) {
  const cell = (value, kind) => {
    const fill = element('span', { class: 'ts-fill' });
    fill.style.width = `${value * 100}%`;
    return element('td', { class: `ts-chance ${kind}`, title: format.exact(value), 'data-chance': value },
      element('span', { class: 'ts-share', text: format.percent(value) }), element('span', { class: 'ts-bar', 'aria-hidden': 'true' }, fill));
  };
  return element('table', { class: 'ts-chances' }, head(TEXT.token, ...(changed ? [TEXT.before, TEXT.after] : [TEXT.now])),
    element('tbody', {}, ...answer.verdicts.map(([before, after], n) => element('tr', {},
      element('th', { scope: 'row' }, element('bdi', { text: answer.tokens[n].own })), cell(before, 'before'), changed ? cell(after, 'after') : null))));
}

/** The cells of one query as numbers. maps: {terms: [values], scores, probabilities, before}. */
export function rowTable(answer, maps, row) {
  const width = answer.columns.length;
  const changed = answer.off.length > 0;
  const cell = (values, column) => element('td', { text: number(values[row * width + column]) });
  const share = (values, column) => element('td', { title: format.exact(values[row * width + column]), text: format.percent(values[row * width + column]) });
  return element('table', {},
    element('caption', { text: t`Query: ${answer.tokens[answer.rows[row]].text} (${answer.rows[row]})` }),
    head(TEXT.key, TEXT.distance, ...answer.names.map((name) => nameOf(answer, name)), TEXT.score, 'Softmax', ...(changed ? [TEXT.before] : [])),
    element('tbody', {}, ...answer.columns.map((position, column) => element('tr', {},
      element('th', { scope: 'row' }, element('bdi', { text: answer.tokens[position].text }), element('small', { text: ` ${position}` })),
      element('td', { text: whole(answer.rows[row] - position) }),
      ...maps.terms.map((values) => cell(values, column)), cell(maps.scores, column), share(maps.probabilities, column),
      changed ? share(maps.before, column) : null))));
}

export function familyTable() {
  return element('table', { class: 'ts-families' }, head(TEXT.family, TEXT.terms, TEXT.places),
    element('tbody', {}, ...TEXT.families.map((rest, n) => element('tr', {}, element('th', { scope: 'row', text: FAMILIES[n] }),
      ...rest.map((text) => element('td', { text }))))));
}

// In the maps and in the numbers below them; the chart of distances has the same ones.
export const COLOURS = { content: '--ink-soft', c2p: '--model', p2c: '--hidden-mark', position: '--model', segment: '--random-mark' };

/** "distance 200 reads row 409, as do 198 to 203" in the page's language. */
export function sayRow({ rows, reach }, wanted) {
  const distance = Math.max(-reach, Math.min(reach, wanted));
  const row = rows[distance + reach];
  let [low, high] = [distance, distance];
  while (low > -reach && rows[low - 1 + reach] === row) low -= 1;
  while (high < reach && rows[high + 1 + reach] === row) high += 1;
  if (low === high) return t`Distance ${whole(distance)} reads row ${row}, and no other distance does.`;
  return t`Distance ${whole(distance)} reads row ${row}, as every distance from ${whole(low)} to ${whole(high)} does.`;
}
