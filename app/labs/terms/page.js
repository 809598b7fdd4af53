// Terms: the words and the parts of the page.
import { makeFigure } from '../../parts/figure.js';
import { labHead, namedFold } from '../../parts/layout.js';
import { COLOURS, NAMES, familyTable, nameOf, number, whole } from './parts.js';

const { element, format, t, texts } = window.Cloze;

export const TEXT = texts({
  title: 'What is a score made of?',
  intro: 'DeBERTa keeps what a piece is apart from where it stands: each score is a sum of content to content, content to position and position to content. '
    + 'Take one head apart, switch a term off, and watch its map and the prediction.',
  silent: 'The server does not answer. Is it still running?',
  parts: 'One head, taken apart', reader: 'Model', layer: 'Layer', head: 'Head', stream: 'Stream', attempt: 'Try', tries: 'What to try',
  streams: { content: 'content stream', query: 'query stream', mask_decoder: 'mask decoder' },
  score: 'score', softmax: 'attention (softmax)', change: 'change of attention',
  offNote: { head: 'off in this head', layer: 'off in this layer', model: 'off in every layer' },
  point: 'Point at a cell, or focus the maps and press the arrow keys. Rows look at columns.',
  unseen: 'Grey cells of the score: the row may not see that piece, as it is hidden from it.',
  exact: 'Checked: in every cell the terms add up to the score in the trace, without any difference.',
  earlier: 'Earlier pieces', later: 'Later pieces', row: 'The numbers of one row', rowPick: 'Query',
  terms: 'Terms of the score', where: 'Switched off in', scopes: { head: 'this head', layer: 'this layer', model: 'the whole model' },
  prediction: 'What the model makes of it', gap: 'Hidden word',
  allOn: 'All terms are on. Switch one off above.',
  hide: 'Hide a word above the tabs to see what the model would put there, with and without a term.',
  silentModel: 'This model has no head that predicts or judges words; the maps change all the same.',
  judges: 'This model judges tokens and predicts none. Below: the probability that each one was replaced.',
  judgesMarked: 'This model judges tokens and predicts none: it reads the sentence without gaps. Below: the probability that each token was replaced.',
  distance: 'What a distance is worth', reach: 'Distances up to',
  distanceNote: 'Distance: place of the looking piece less place of the one looked at. Dots are means over the pairs of this sentence; '
    + 'lines are what these queries and keys would give to any distance.',
  noEdges: 'Within this range there are no shared rows, so no edges of buckets.',
  sinusoids: 'XLNet has no table and no buckets: every distance is a sinusoid of its own, so only pairs that occur are drawn.',
  noTable: 'One product q·k: a mean over distances shows habits of the head, no term of its own.',
  far: 'The dots end with the sentence; the lines go on.',
  table: 'Which distances look alike?', size: 'Published size', distancePick: 'Distance',
  tableNote: 'A table of learned rows cannot have one for every distance. The first version clips; v2 and v3 let buckets grow with the logarithm. '
    + 'Shaded: distances with a row of their own; thin line: one row for each, without a limit. No model is needed for this.',
  decoder: 'The mask decoder',
  noDecoder: 'This model has no mask decoder: masked words are predicted from the last layer. DeBERTa v1, v2 and the generators of v3 have one, as absolute positions enter there only.',
  hideDecoder: 'Hide a word above the tabs to compare predictions with the decoder and without.',
  decoderWarn: 'Without a decoder the head reads the last layer, which it was never trained on: a worse answer is no proof that positions were missing. Fairer is the decoder without positions.',
  families: 'Terms of every family', back: 'Back to the model of the sentence bar',
  none: 'No model with terms of its own is installed. Train a DeBERTa in the Train tab, or run',
  chancesRegion: 'Predictions', mapsRegion: 'Row of the maps', decoderRegion: 'Predictions of the decoder', familiesRegion: 'Families',
});
const COMMAND = 'python -m core_models.zoo build deberta-mini';
// Telling with deberta-mini (app/serving/demonstrations.py): without positions "America" falls from 66 % to nothing, without contents
// "Paris" from 48 to 2 %.
const MEXICO = 'Mexico lies in North America.';
const CAPITAL = 'The capital of France is Paris.';
const SPANISH = 'The language of Argentina is Spanish.';
export const TRY = [
  { name: t`Without positions`, text: MEXICO, hide: 'america', patch: { off: ['c2p', 'p2c', 'position'], scope: 'model' } },
  { name: t`Without contents`, text: CAPITAL, hide: 'paris', patch: { off: ['content'], scope: 'model' } },
  { name: t`One term in one head`, text: SPANISH, hide: 'spanish', patch: { off: ['p2c', 'segment'], scope: 'head' } },
  { name: t`Two equal places`, text: 'The old [MASK] stands behind the old [MASK].', patch: { stream: 'mask_decoder' } },
  { name: t`Far away`, patch: { reach: 640 } },
];

/** The sum of one cell in words: a + b + c = score, softmax. */
export function sumOf(answer, maps, { row, column }) {
  const n = row * answer.columns.length + column;
  const [from, to] = [answer.rows[row], answer.columns[column]];
  const parts = [element('bdi', { text: answer.tokens[from].text }), ' → ', element('bdi', { text: answer.tokens[to].text }), ` (${whole(from - to)}): `];
  answer.names.forEach((name, index) => {
    const value = element('span', { class: 'ts-value', 'data-term': name, title: nameOf(answer, name), text: number(maps.terms[index][n]) });
    value.style.setProperty('--key', `var(${COLOURS[name]})`);
    parts.push(index ? ' + ' : '', value);
  });
  parts.push(' = ', element('b', { 'data-term': 'score', text: number(maps.scores[n]) }), ' → ', element('b', { 'data-term': 'softmax', title: format.exact(maps.probabilities[n]), text: format.percent(maps.probabilities[n]) }));
  if (answer.off.length) parts.push(t` (before: ${format.percent(maps.before[n])})`);
  return parts;
}

const pick = (id, label) => {
  const select = element('select', { id, class: 'ts-pick' });
  return { select, label: element('label', { class: 'ts-label', for: id }, element('span', { text: label }), select) };
};
const fill = (select, entries, value) => {
  const wanted = JSON.stringify(entries);
  if (select.dataset.entries !== wanted) {
    select.replaceChildren(...entries.map(([each, text]) => element('option', { value: each, text })));
    select.dataset.entries = wanted;
  }
  select.value = value;
};
const region = (label) => element('div', { class: 'ts-scroll', tabindex: '0', role: 'region', 'aria-label': label });
const card = (id, title, ...children) => element('section', { class: 'card', id }, element('h3', { text: title }), ...children);
const note = (text = '') => element('p', { class: 'ts-note', text });

/** Lay the tab out; returns its parts, with `draw(answer, state)` for the controls. */
export async function buildPage(root, { set, attempt, switchOff }) {
  const layer = pick('ts-layer', TEXT.layer);
  const head = pick('ts-head', TEXT.head);
  const stream = pick('ts-stream', TEXT.stream);
  const gap = pick('ts-gap', TEXT.gap);
  const rowPick = pick('ts-row', TEXT.rowPick);
  const reach = pick('ts-reach', TEXT.reach);
  const sizes = pick('ts-size', TEXT.size);
  const distancePick = element('input', { type: 'number', id: 'ts-distance', min: -1024, max: 1024, value: 0, class: 'ts-number' });
  const button = (id, text) => element('button', { type: 'button', class: 'quiet outlined', id, text });
  const part = {
    problem: element('p', { class: 'problem', role: 'status', hidden: true }), results: element('div', { class: 'ts-body', hidden: true }),
    plainText: element('p'), noneText: element('div', {}, element('p', { text: TEXT.none }), element('pre', { class: 'code', tabindex: '0', text: COMMAND })),
    offers: element('div', { class: 'ts-row' }), otherText: element('span', { class: 'ts-note' }), back: button('ts-back', TEXT.back),
    maps: element('div', { class: 'ts-maps', 'data-picture': '' }), cell: element('p', { class: 'ts-cell', role: 'status' }), scale: note(), unseen: note(TEXT.unseen), check: note(),
    earlier: button('ts-earlier', TEXT.earlier), later: button('ts-later', TEXT.later), windowText: element('span', { class: 'ts-note' }),
    rowPick: rowPick.select, rowBox: region(TEXT.mapsRegion), gapPick: gap.select, gapRow: gap.label, said: element('p', { class: 'summary', role: 'status' }),
    prediction: region(TEXT.chancesRegion), distance: makeFigure({ name: 'cloze-terms-distances' }),
    edges: note(), far: note(TEXT.far), sizes: sizes.select, distancePick, tableRows: makeFigure({ name: 'cloze-terms-table' }),
    tableSaid: element('p', { class: 'ts-cell', role: 'status' }), formula: element('pre', { class: 'code', tabindex: '0' }),
    decoder: region(TEXT.decoderRegion), decoderNote: note(), decoderWarn: note(TEXT.decoderWarn), files: element('div', { class: 'ts-save' }),
  };
  part.plain = element('section', { class: 'card', id: 'ts-plain' }, part.plainText, part.offers, part.noneText);
  part.otherRow = element('div', { class: 'ts-row', id: 'ts-other' }, part.otherText, part.back);
  part.windowRow = element('div', { class: 'ts-row' }, part.earlier, part.windowText, part.later);
  part.rowDetails = element('details', { id: 'ts-rows' }, element('summary', { text: TEXT.row }), rowPick.label, part.rowBox);
  part.table = namedFold('ts-table', TEXT.table, note(TEXT.tableNote),
    element('div', { class: 'ts-row' }, sizes.label, element('label', { class: 'ts-label', for: 'ts-distance' }, element('span', { text: TEXT.distancePick }), distancePick)),
    part.tableSaid, part.tableRows.root, part.formula);
  part.table.hidden = true;
  const switches = element('div', { class: 'ts-row', role: 'group', 'aria-label': TEXT.terms });
  const scopes = element('div', { class: 'ts-row', role: 'radiogroup', 'aria-label': TEXT.where });
  const switchRow = element('div', { class: 'ts-switches' }, switches, element('div', { class: 'ts-row' }, element('span', { class: 'ts-note', text: TEXT.where }), scopes));
  const families = region(TEXT.familiesRegion);
  families.append(familyTable());
  part.long = element('p', { class: 'ts-note', id: 'ts-long', hidden: true });
  part.results.append(
    element('section', { class: 'card', id: 'ts-parts' }, element('div', { class: 'ts-row' }, layer.label, head.label, stream.label), switchRow, part.maps, part.cell, part.otherRow, part.long, part.windowRow, part.rowDetails), part.plain,
    namedFold('ts-prediction', TEXT.prediction, gap.label, part.said, part.prediction),
    namedFold('ts-distances', TEXT.distance, note(TEXT.distanceNote), reach.label, part.distance.root, part.edges, part.far),
    namedFold('ts-decoder', TEXT.decoder, part.decoderNote, part.decoder, part.decoderWarn), namedFold('ts-about', t`What this shows`, element('p', { class: 'lab-about', text: TEXT.intro }), part.scale, part.unseen, part.check), namedFold('ts-files', t`Files and code`, part.files));
  root.replaceChildren(element('div', { class: 'ts' },
    labHead(TEXT.title, element('div', { class: 'ts-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'ts-note', text: TEXT.attempt }),
      ...TRY.map((entry, n) => element('button', { type: 'button', class: 'quiet outlined', 'data-try': n, text: entry.name, onclick: () => attempt(entry) })))),
    part.problem, part.results, part.table, element('details', { class: 'ts-all' }, element('summary', { text: TEXT.families }), families)));

  for (const [name, each] of Object.entries({ layer, head, gap, reach })) each.select.addEventListener('change', () => set({ [name]: Number(each.select.value) }));
  stream.select.addEventListener('change', () => set({ stream: stream.select.value, layer: 0 }));
  sizes.select.addEventListener('change', () => set({ size: sizes.select.value }));
  part.back.addEventListener('click', () => set({ reader: null, off: [], stream: 'content', first: 0 }));

  function choice(name, on, text, role, clicked) {
    return element('button', {
      type: 'button', class: role === 'switch' ? 'switch' : 'quiet outlined', role, 'aria-checked': String(on), [`data-${role === 'switch' ? 'switch' : 'scope'}`]: name, onclick: clicked,
    }, role === 'switch' ? element('span', { class: 'track', 'aria-hidden': 'true' }) : null, element('span', { text }));
  }
  part.draw = (answer, state) => {
    const range = (count, text) => Array.from({ length: count }, (_, n) => [n, text(n + 1)]);
    fill(layer.select, range(answer.layers, (n) => t`Layer ${n}`), answer.layer);
    fill(head.select, range(answer.heads, (n) => t`Head ${n}`), answer.head);
    fill(stream.select, answer.streams.map((name) => [name, TEXT.streams[name]]), answer.stream);
    fill(reach.select, [16, 64, 160, 640].map((n) => [n, String(n)]), state.reach);
    stream.label.hidden = answer.streams.length < 2;
    switchRow.hidden = answer.names.length < 2;
    part.results.hidden = false;
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    const [term, scope] = [focused?.dataset.switch, focused?.dataset.scope];
    switches.replaceChildren(...answer.names.map((name) => choice(name, !answer.off.includes(name), NAMES[name], 'switch', () => switchOff(name))));
    scopes.replaceChildren(...Object.entries(TEXT.scopes).map(([name, text]) => choice(name, name === answer.scope, text, 'radio', () => set({ scope: name }))));
    if (term) switches.querySelector(`[data-switch="${term}"]`)?.focus();
    if (scope) scopes.querySelector(`[data-scope="${scope}"]`)?.focus();
  };
  return part;
}
