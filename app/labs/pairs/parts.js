// Pairs: bars, similarity, and what many examples say. Numbers come from Python.
const { element, t, texts, language } = window.Cloze;

export const HEADS = {
  next_sentence: { ...texts({ title: 'Next sentence', yes: 'next', no: 'random' }), recipe: 'bert-mini' },
  sentence_order: { ...texts({ title: 'Sentence order', yes: 'in order', no: 'swapped' }), recipe: 'albert-mini' },
};
export const KINDS = texts({
  next: ['Real next', 'the sentence that follows in the text'],
  swapped: ['Swapped', 'the same two, the other way round'],
  same: ['Same topic', 'another sentence of the passage, no neighbour'],
  other: ['Random', 'a sentence about something else'],
});
// What should come out, said before the answer is there.
export const EXPECTED = texts({
  next: 'Right is “next” for a next-sentence head, and “in order” for a sentence-order head.',
  swapped: 'Right is “swapped” for a sentence-order head. A next-sentence head does not see order: no swapped pair stands in its training, so expect the same of it as for the true pair.',
  same: 'Neither head was trained on such pairs, so no answer is right or wrong. A next-sentence head often goes by the topic and says “next”.',
  other: 'Right is “random” for a next-sentence head. A sentence-order head never saw such a pair, so its answer says nothing.',
});
const TEXT = texts({
  mean: 'Mean', blind: 'This model reads from left to right: its first piece sees nothing of the text.',
});

export function bar(value, kind = '') {
  const fill = element('span', { class: 'pr-fill' });
  fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return element('span', { class: `pr-bar ${kind}`, 'aria-hidden': 'true' }, fill);
}

export function cosines(answer) {
  const { pair, other } = answer.similarity;
  const line = (name, text, value, compare) => element('div', { class: 'pr-cosine', 'data-cosine': name },
    element('b', { text }), value === null ? element('span', { class: 'pr-small', text: TEXT.blind }) : bar(value),
    element('span', { class: 'pr-number', text: value === null ? '' : value.toFixed(3) }),
    element('span', { class: 'pr-small', text: compare === null ? '' : t`with a text on another topic: ${compare.toFixed(3)}` }));
  return [line('cls', '[CLS]', pair.cls, other.cls), line('mean', TEXT.mean, pair.mean, other.mean)];
}

/** What judges that answer always the same are worth. */
export const constantNotes = (answer) => answer.constant.map((head) => {
  const said = Object.values(answer.counts[head]).reduce((sum, count) => sum + count, 0);
  const mostly = said > answer.asked / 2;
  const { yes, no } = HEADS[head];
  return element('p', { class: 'pr-small pr-held', 'data-constant': head, 'data-guesses': true,
    text: t`${answer.answering[head]} says “${mostly ? yes : no}” to ${mostly ? said : answer.asked - said} of ${answer.asked} pairs: this judge always answers the same. It was trained too little, so its answers say nothing.` });
});

// A change of the probability of yes, in whole sentences: a cost is never below zero.
const UNCHANGED = 0.0005;
const points = (value) => (Math.abs(value) * 100).toFixed(1);
function topicEffect(yes, fall) {
  if (Math.abs(fall) < UNCHANGED) return t`Another topic leaves “${yes}” as it is.`;
  return fall > 0 ? t`Another topic makes “${yes}” ${points(fall)} points less probable.` : t`Another topic makes “${yes}” ${points(fall)} points more probable.`;
}
function orderEffect(yes, fall) {
  if (Math.abs(fall) < UNCHANGED) return t`The wrong order leaves “${yes}” as it is.`;
  return fall > 0 ? t`The wrong order makes “${yes}” ${points(fall)} points less probable.` : t`The wrong order makes “${yes}” ${points(fall)} points more probable.`;
}

const joined = (sentences) => sentences.join(language === 'zh' ? '' : ' ');
export const effectWords = (yes, { topic, order }) => joined([topicEffect(yes, topic), orderEffect(yes, order)]);

const NOTICED = 0.1; // a smaller change says nothing

const MINDS = texts({
  topic: { for: 'it goes by the topic', not: 'it hardly minds the topic', against: 'it prefers the other topic' },
  order: { for: 'it goes by the order', not: 'it hardly minds the order', against: 'it prefers the wrong order' },
});

/** What two texts tell of each head: whether it minds the topic and the order, and which way. */
export function verdict(heads) {
  const side = (effect, other) => {
    if (Math.abs(effect) < NOTICED || 2 * Math.abs(effect) < Math.abs(other)) return 'not';
    return effect > 0 ? 'for' : 'against';
  };
  return joined(Object.entries(heads).map(([head, { effects: { topic, order }, reliability: known }]) => {
    const { title } = HEADS[head];
    if (known?.guesses) return t`${title}: on held-out texts this head only guesses, so what it says here means nothing.`;
    const [about, way] = [side(topic, order), side(order, topic)];
    if (about === 'not' && way === 'not') return t`${title}: on these texts it hardly tells the pairs apart.`;
    return t`${title}: on these texts ${MINDS.topic[about]}, and ${MINDS.order[way]}.`;
  }));
}
