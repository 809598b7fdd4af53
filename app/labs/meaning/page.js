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
  chart: 'Mean cosine by layer; the table below has the numbers.', yours: 'your sentences', random: 'different words of the Primer', table: 'The numbers of every layer',
  near: 'Its neighbours in the Primer', nearOf: 'Neighbours of sentence', others: 'Other words only', noNear: 'The texts hold no other word to compare with.',
  building: 'The words of the Primer are being read by this model, once. The page can be used meanwhile.', progress: 'Reading the Primer',
  rank: 'Rank', neighbour: 'Word', cosine: 'Cosine', where: 'In the sentence', own: 'the same word', start: 'Static embedding', input: 'Input',
  cosineTable: 'Cosines', layersTable: 'Every layer', nearTable: 'Neighbours',
  several: 'The word is cut into several pieces; its vector is the mean of theirs.',
  picture: 'Paths of the word through the layers; the table of cosines below has the numbers.',
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
/** The short label under an axis. */
export const layerMark = (number) => (number === 0 ? 'E' : String(number - 1));
export const signed = (value) => (Math.abs(value) < 0.005 ? '0.00' : value.toFixed(2).replace('-', '−'));

/** A sentence with the word in bold. Start and end count code points, as Python does. */
export function around(text, start, end) {
  const letters = Array.from(text);
  return element('span', { class: 'mn-text', dir: 'auto' }, letters.slice(0, start).join(''), element('b', { text: letters.slice(start, end).join('') }), letters.slice(end).join(''));
}

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

/** Mean cosine between different occurrences at every layer. */
export function meanCosines(table) {
  return table.map((rows) => {
    const others = rows.flatMap((row, r) => row.filter((_, c) => c !== r));
    return others.reduce((sum, value) => sum + value, 0) / others.length;
  });
}

export function layersTable(answer) {
  const { cosines, background, steps } = answer;
  const [raw, centred] = [meanCosines(cosines.raw), meanCosines(cosines.centred)];
  const head = [TEXT.layer, t`Your sentences, as they are`, t`Primer, as they are`, t`Your sentences, mean subtracted`, t`Primer, mean subtracted`];
  return element('table', {}, element('thead', {}, element('tr', {}, ...head.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...Array.from({ length: steps + 2 }, (_, n) => element('tr', {}, element('th', { scope: 'row', text: layerName(n) }),
      ...[raw[n], background.raw[n], centred[n], background.centred[n]].map((value) => element('td', { text: signed(value) }))))));
}

export function nearTable(found) {
  const head = [TEXT.rank, TEXT.neighbour, TEXT.cosine, TEXT.where];
  return element('table', { class: 'mn-near' }, element('thead', {}, element('tr', {}, ...head.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...found.near.map((each, n) => {
      const fill = element('span', { class: 'mn-fill' });
      fill.style.width = `${Math.max(0, each.cosine) * 100}%`;
      return element('tr', { class: each.same ? 'same' : '', 'data-word': each.word }, element('td', { text: n + 1 }),
        element('th', { scope: 'row' }, element('bdi', { text: each.word }), each.same ? element('small', { text: TEXT.own }) : null),
        element('td', { class: 'mn-cosine' }, element('span', { text: each.cosine.toFixed(3).replace('-', '−') }), element('span', { class: 'mn-bar', 'aria-hidden': 'true' }, fill)),
        element('td', { class: 'mn-where' }, around(each.sentence, each.start, each.end)));
    })));
}
