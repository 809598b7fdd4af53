// What the Mask tab's sections show. Numbers come from Python as natural logarithms.
import { sightGrid } from './sight.js';

const { element, format, t, texts, message: say, listed, modelTitle } = window.Cloze;

/** A probability from its logarithm: per cent, or a power of ten where that would read 0. */
export function chance(log) {
  if (log === null || log === undefined) return '–';
  if (log > Math.log(1e-5)) return format.percent(Math.exp(Math.min(log, 0)));
  const power = Math.floor(log / Math.LN10);
  const digits = [...String(-power)].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]).join('');
  return `${Math.exp(log - power * Math.LN10).toFixed(1)} × 10⁻${digits}`;
}

const exact = (log) => (log === null || log === undefined ? null : `log p = ${log.toFixed(4)}`);
const number = (log, label) => element('td', { class: 'lab-number', 'data-label': label, title: exact(log), text: chance(log) });

function bar(share) {
  const fill = element('span', { class: 'fill' });
  fill.style.transform = `scaleX(${Math.max(0, Math.min(1, share))})`;
  return element('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}

function table(caption, heads, rows, kind = '') {
  return element('div', { class: `lab-table ${kind}`, tabindex: '0', role: 'region', 'aria-label': caption },
    element('table', {},
      element('caption', { text: caption }),
      element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col', text })))),
      element('tbody', {}, ...rows)));
}

// --- several gaps together ---------------------------------------------------------------------

const WAYS = texts({
  independent: 'Independent',
  left_to_right: 'Left to right',
  most_confident: 'Surest first',
  beam: 'Beam',
  given: 'Your words',
});

const inText = (filling) => [...filling.choices].sort((a, b) => a.position - b.position);
const phrase = (filling) => `“${inText(filling).map(({ display }) => display).join(' … ')}”`;
const same = (a, b) => inText(a).every(({ id }, n) => id === inText(b)[n].id);

function judge(ways) {
  const alone = ways[0][0];
  if (alone.choices.length < 2) return t`With one gap all ways agree. Hide a second word to see them differ.`;
  const best = ways.flat().reduce((one, other) => (other.chained > one.chained ? other : one));
  const [read, apart, chained] = [phrase(alone), chance(alone.apart), chance(alone.chained)];
  if (same(best, alone)) return t`Filled independently the gaps read ${read}, and no way finds anything better: here the gaps hardly depend on each other.`;
  const better = [phrase(best), chance(best.chained)];
  return alone.choices.length === 2
    ? t`Filled independently the gaps read ${read}. Each word is the best for its own gap, and independence gives the pair ${apart}; but asked with the first word in place, the model gives it ${chained}. ${better[0]} has ${better[1]}.`
    : t`Filled independently the gaps read ${read}. Each word is the best for its own gap, and independence gives the whole ${apart}; but asked with the earlier words in place, the model gives it ${chained}. ${better[0]} has ${better[1]}.`;
}

function fillingRow(filling, best) {
  const inOrder = filling.choices.every(({ position }, n) => !n || position > filling.choices[n - 1].position);
  const turn = new Map(filling.choices.map(({ position }, n) => [position, n + 1]));
  const words = inText(filling).map((choice) => element('span', { class: 'lab-word', title: exact(choice.log_probability) },
    element('bdi', { text: choice.display }),
    inOrder ? null : element('sub', { text: turn.get(choice.position), 'aria-label': t`filled as number ${turn.get(choice.position)}` })));
  return element('tr', { class: filling.way === 'given' ? 'own' : '', 'data-way': filling.way },
    element('th', { scope: 'row', text: WAYS[filling.way] }),
    element('td', { class: 'lab-filling' }, ...words),
    number(filling.apart, t`As separate gaps`),
    number(filling.chained, t`As a whole`),
    element('td', { class: 'lab-bar' }, bar(Math.exp(filling.chained - best))));
}

function drawTogether({ ways, own, notes }) {
  const best = Math.max(...ways.flat().map(({ chained }) => chained));
  const rows = [...ways.map(([first]) => first), ...(own ? [own] : [])];
  const beam = ways.at(-1).slice(1);
  const parts = [
    element('p', { class: 'summary', role: 'status', text: judge(ways) }),
    table(t`Four ways to fill the gaps`, [t`Way`, t`Filling`, t`As separate gaps`, t`As a whole`, ''],
      rows.map((filling) => fillingRow(filling, best)), 'lab-stack'),
  ];
  if (beam.length && own && own.choices.length > 1) {
    const others = listed(beam.map((filling) => `${phrase(filling)} ${chance(filling.chained)}`));
    parts.push(element('p', { class: 'lab-small', text: t`The beam also kept ${others}.` }));
  }
  for (const note of notes) parts.push(element('p', { class: 'lab-small', text: say(note) }));
  parts.push(element('p', { class: 'lab-small', text: t`“As separate gaps” multiplies what the model says while all gaps are open. “As a whole” follows the chain rule from left to right: each word is put in before the next is asked for. A small number shows the turn where words were filled in another order.` }));
  return parts;
}

// --- a word of several pieces --------------------------------------------------------------------

function drawWord({ words, own }) {
  const known = words.filter(({ note }) => !note).sort((a, b) => b.log_probability - a.log_probability);
  const most = known[0]?.log_probability ?? 0;
  const rows = known.map((entry) => element('tr', { class: entry.word === own ? 'own' : '', 'data-word': entry.word },
    element('th', { scope: 'row' }, element('bdi', { text: entry.word })),
    element('td', { class: 'lab-pieces' }, ...entry.pieces.map((piece, n) => element('span', { class: 'lab-piece', title: exact(entry.steps[n]) },
      element('bdi', { text: piece }), element('small', { text: chance(entry.steps[n]) })))),
    number(entry.log_probability, t`Whole word`),
    element('td', { class: 'lab-bar' }, bar(Math.exp(entry.log_probability - most)))));
  const long = known.find(({ pieces }) => pieces.length > 1);
  const parts = [];
  if (long) {
    const least = long.steps.indexOf(Math.min(...long.steps));
    const [pieces, hardest] = [long.pieces.join(' · '), long.pieces[least]];
    parts.push(element('p', { class: 'summary', role: 'status',
      text: t`“${long.word}” is ${long.pieces.length} pieces here: ${pieces}. The model is surprised most by “${hardest}” (${chance(long.steps[least])}).` }));
  }
  if (rows.length) parts.push(table(t`Words in this gap`, [t`Word`, t`Its pieces, each after those before it`, t`Whole word`, ''], rows, 'lab-stack'));
  for (const { note } of words) if (note) parts.push(element('p', { class: 'lab-small', text: say(note) }));
  parts.push(element('p', { class: 'lab-small', text: t`The gap is made as long as the word, so the model knows how many pieces are missing: compare words of the same number of pieces first. A model that reads from the left sees nothing of the gap.` }));
  return parts;
}

// --- several models -------------------------------------------------------------------------------

const SEES = texts({
  masked: 'Sees both sides of the gap at once.',
  order: 'Predicts in an order, with this gap last: a query knows where the gap is and every word that is not hidden.',
  causal: 'Sees only what stands to the left of the gap.',
});

// A title says after a dot what the model does; here its name is enough.
const short = ({ title }) => title.split(' · ')[0];

function modelCard(entry) {
  const head = element('h4', { text: short(entry) });
  if (entry.error) {
    return element('section', { class: 'lab-model', 'data-model': entry.name }, head, element('p', { class: 'lab-small', text: say(entry.error) }));
  }
  const row = (rank, word, log, kind = '') => element('div', { class: `candidate ${kind}` },
    element('span', { class: 'rank', text: rank }), element('bdi', { class: 'word', text: word }),
    bar(Math.exp(log)), element('span', { class: 'share', title: exact(log), text: chance(log) }));
  const fillings = entry.fillings ?? [];
  return element('section', { class: 'lab-model', 'data-model': entry.name, 'data-kind': entry.kind },
    head, element('p', { class: 'lab-small', text: SEES[entry.kind] }),
    ...fillings.map(({ word, total }, n) => row(n + 1, word, total)),
    entry.own === null || entry.own === undefined ? null : row('', t`yours`, entry.own, 'was'),
    entry.note ? element('p', { class: 'lab-small', text: say(entry.note) }) : null,
    entry.gap?.positions.length > 1 ? element('p', {
      class: 'lab-pieces-note', text: t`The gap is ${entry.gap.positions.length} pieces here, which need not make one word.`,
    }) : null,
    entry.sight ? sightGrid(entry.sight) : null);
}

function rough(value) {
  if (value === null) return '–';
  if (value < 100) return value.toFixed(2);
  return value < 1e7 ? format.count(Math.round(value)) : t`over 10 million`;
}

function drawModels({ models, choices, most, words, at, causal }, { choose }) {
  const chosen = models.map(({ name }) => name);
  const buttons = choices.map(({ name, title }) => {
    const on = chosen.includes(name);
    return element('button', {
      type: 'button', class: 'quiet outlined', 'aria-pressed': String(on), 'data-name': name, disabled: !on && chosen.length >= most, text: modelTitle(title),
      onclick: () => choose(on ? chosen.filter((other) => other !== name) : [...chosen, name]),
    });
  });
  const scored = models.filter(({ words: values }) => values);
  const kinds = new Set(models.map(({ kind }) => kind));
  const parts = [element('div', { class: 'lab-choices', role: 'group', 'aria-label': t`Models, up to ${most}` }, ...buttons)];
  if (kinds.has('causal') && kinds.size > 1) {
    parts.push(element('p', { class: 'summary', role: 'status', text: t`The same gap, but not the same question: the model that reads from the left must guess before it has read the rest, the others may use what follows.` }));
  }
  if (!causal) {
    parts.push(element('p', { class: 'lab-small' },
      `${t`No model that reads from the left is installed to compare with. Train one on the Train tab, or run:`} `,
      element('code', { text: 'python -m core_models.zoo build causal-mini' })));
  }
  if (at === null) parts.push(element('p', { class: 'lab-small', text: t`Hide a word to see each model’s answer for it.` }));
  parts.push(element('div', { class: 'lab-models' }, ...models.map((entry) => modelCard(entry))));
  if (models.some(({ sight }) => sight)) {
    parts.push(element('p', { class: 'lab-small', text: t`The grids show who looks at whom, measured in this pass: the word of a row looks at the words of the filled columns, in some head of some layer. The outlined row is the one that the prediction is read from.` }));
  }
  if (models.some((entry) => !entry.error && !entry.words)) {
    parts.push(element('p', { class: 'lab-small', text: t`The words of this text are not scored: it has more than 64 pieces, and each would be a copy of the text.` }));
  }
  if (scored.length) {
    const rows = words.map((word, n) => element('tr', {}, element('th', { scope: 'row' }, element('bdi', { text: word })),
      ...scored.map(({ words: values }) => {
        const cell = element('td', { class: 'lab-number lab-shade', title: exact(values[n]), text: chance(values[n]) });
        cell.style.setProperty('--share', values[n] === null ? 0 : Math.exp(values[n]));
        return cell;
      })));
    rows.push(element('tr', { class: 'lab-tops' }, element('th', { scope: 'row', text: t`Pseudo-perplexity` }),
      ...scored.map(({ perplexity }) => element('td', { class: 'lab-number', text: rough(perplexity) }))));
    parts.push(table(t`Each word of the sentence, given the others`, [t`Word`, ...scored.map(short)], rows, 'lab-wide'));
    parts.push(element('p', { class: 'lab-small', text: t`Each piece is hidden in turn, and a word is the product of its pieces; a model that reads from the left sees only the words before, and its value is a perplexity proper. Pseudo-perplexity is the geometric mean of 1 / p over words: how many equally likely words would be as hard to guess. Words of several pieces look easier than they are, as the other pieces stay in sight.` }));
  }
  return parts;
}

// --- the three --------------------------------------------------------------------------------------

const empty = t`Hide a word above, or take an example.`;

export const LABS = {
  together: {
    intro: t`A masked model answers for each gap as if the others stayed open. Two answers that are best apart need not fit together; putting one in before asking for the next lets the second know the first.`,
    tries: [
      { name: t`A capital and its country`, text: 'The capital of France is Paris.', hide: ['France', 'Paris'] },
      { name: t`Two words`, text: 'People who visit Argentina often begin in the capital, Buenos Aires.', hide: ['Buenos', 'Aires'] },
    ],
    needsGap: true, empty, draw: drawTogether,
  },
  word: {
    intro: t`One gap holds one piece of the vocabulary, so a rare word has no probability of its own. It gets one when its pieces are put in from left to right, each after those before it.`,
    words: t`Words`, needsGap: true, empty, draw: drawWord,
    tries: [
      { name: t`Bulgarian`, text: 'The language of Bulgaria is Bulgarian.', hide: ['Bulgarian'], rivals: ['english', 'russian', 'macedonian'] },
    ],
  },
  models: {
    intro: t`Each model answers through its own head and in its own pieces; answers are compared as words.`,
    tries: [
      { name: t`The end tells`, text: 'Paris is the capital of France.', hide: ['Paris'] },
      { name: t`Nothing follows`, text: 'The capital of France is Paris', hide: ['Paris'] },
    ],
    needsGap: false, empty, draw: drawModels,
  },
};
