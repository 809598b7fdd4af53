// Meaning: the words of the page, its examples, and tables.
const { element, t, texts } = window.Cloze;

export const TEXT = texts({
  title: 'One word, many meanings',
  intro: 'The table of pieces has one vector for a word, whatever it means. Layer by layer its surroundings move it: follow one word through several sentences, '
    + 'and see beside which words of the Primer it ends up.',
  silent: 'The server does not answer. Is it still running?',
  attempt: 'Try', tries: 'What to try', word: 'Word', sentences: 'Sentences', add: 'Add a sentence', remove: 'Remove', fromBar: 'Take the sentence of the page',
  missing: 'does not hold the word', path: 'The path through the layers', layer: 'Layer', play: 'Play', pause: 'Pause',
  ways: { centred: 'mean subtracted', raw: 'as they are' }, way: 'Vectors',
  pathNote: 'The axes are fitted once on all layers and sentences together (the two main directions of their differences) and stay while you step. '
    + 'All paths begin at the static embedding, before position and sentence are added.',
  wayNote: { centred: 'At every layer the mean over words of the Primer is subtracted, so that what all words share at a layer does not move the picture.',
    raw: 'Vectors as they are: much of the way is what every word goes through at a layer.' },
  cosines: 'How alike are they?', both: 'Each cell: cosine of the vectors as they are, and below it with the mean subtracted.',
  crowding: 'Contextual vectors crowd into a cone, so any two have a high cosine. The dashed line is the mean cosine of different words of the Primer: only what lies above it is likeness.',
  near: 'Its neighbours in the Primer', nearOf: 'Neighbours of sentence', others: 'Other words only', noNear: 'The texts hold no other word to compare with.',
  building: 'The words of the Primer are being read by this model, once. The page can be used meanwhile.', progress: 'Reading the Primer',
  start: 'Static embedding', input: 'Input', cosineTable: 'Cosines',
  several: 'The word is cut into several pieces; its vector is the mean of theirs.',
});

export const EXAMPLES = [
  { name: 'bank', sentences: ['She sat on the bank of the river.', 'The fish swam close to the bank of the lake.', 'He put the money into the bank.', 'The bank gave the family a loan for the house.'] },
  { name: 'spring', sentences: ['In spring the trees are green again.', 'The lambs are born in spring.', 'The water of the spring is clear and cold.', 'A metal spring pushes the door shut.'] },
  { name: 'light', sentences: ['The light of the sun fell through the window.', 'She switched on the light in the dark room.', 'The bag is light, so the child can carry it.', 'Birds have light bones.'] },
  { name: 'match', sentences: ['The team won the match in the last minute.', 'A football match lasts ninety minutes.', 'He lit the fire with a match.', 'The two numbers do not match.'] },
  { name: 'cold', sentences: ['The winter was long and cold.', 'The water in the lake is cold.', 'She has a cold and stays in bed.', 'He gave her a cold look.'] },
  { name: '花', sentences: ['春天来了，花开了。', '桌上有一束红色的花。', '他花了很多钱买书。', '她花了三个小时写作业。'] },
];

export const COLOURS = 8;
export const layerName = (number) => (number === 0 ? TEXT.start : number === 1 ? TEXT.input : t`After layer ${number - 1}`);
export const signed = (value) => (Math.abs(value) < 0.005 ? '0.00' : value.toFixed(2).replace('-', '−'));

export function badge(number) {
  return element('span', { class: `mn-badge c${number % COLOURS}`, text: number + 1 });
}

function cell(raw, centred, same) {
  const node = element('td', { class: same ? 'same' : '', 'data-raw': raw, 'data-centred': centred }, element('span', { text: signed(raw) }), element('small', { text: signed(centred) }));
  node.style.setProperty('--share', `${Math.round(Math.max(0, centred) * 100)}%`);
  return node;
}

/** Cosines between all occurrences at one layer. */
export function cosineTable(answer, layer) {
  const { used, cosines } = answer;
  return element('table', { class: 'mn-cosines' },
    element('thead', {}, element('tr', {}, element('td'), ...used.map(({ number }) => element('th', { scope: 'col' }, badge(number))))),
    element('tbody', {}, ...used.map((each, row) => element('tr', {}, element('th', { scope: 'row' }, badge(each.number)),
      ...used.map((_, column) => cell(cosines.raw[layer][row][column], cosines.centred[layer][row][column], row === column))))));
}

/** A chart with its marks at a layer: traces bring their places along, a line stands at the layer itself. */
export const at = ({ data, layout, words }, layer) => ({
  words,
  data: data.map((trace) => {
    const point = trace.meta?.points[layer];
    return point ? { ...trace, x: [point[0]], y: [point[1]] } : trace;
  }),
  layout: { ...layout, shapes: layout.shapes?.map((shape) => ({ ...shape, x0: layer, x1: layer })) },
});
