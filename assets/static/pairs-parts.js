// Pairs: bars, similarity, and what many examples say. Numbers come from Python.
const { element, t, texts } = window.Cloze;

export const HEADS = {
  next_sentence: { ...texts({ title: 'Next sentence', yes: 'next' }), recipe: 'bert-mini' },
  sentence_order: { ...texts({ title: 'Sentence order', yes: 'in order' }), recipe: 'albert-mini' },
};
export const KINDS = texts({
  next: ['Real next', 'the sentence that follows in the text'],
  swapped: ['Swapped', 'the same two, the other way round'],
  same: ['Same topic', 'another sentence of the passage, no neighbour'],
  other: ['Random', 'a sentence from another book of the Primer'],
});
const TRUTH = texts({
  next_sentence: { next: 'right: next', swapped: 'right: not next (no such pair in its training)', same: 'right: not next (no such pair in its training)', other: 'right: random' },
  sentence_order: { next: 'right: in order', swapped: 'right: swapped', same: 'no such pair in its training', other: 'no such pair in its training' },
});
const TEXT = texts({
  mean: 'Mean', blind: 'This model reads from left to right: its first piece sees nothing of the text.',
  second: 'The second text is',
  judge: 'Judge', reads: 'How it reads', cross: 'both texts at once', bi: 'each text alone',
  above: { other: 'True pair above the random one', same: 'True pair above one of the same topic', swapped: 'True pair above the swapped one' },
  bi_cls: 'Cosine of [CLS]', bi_mean: 'Cosine of the means',
  legend: 'A coin would win half of them. The cosine is the same both ways round, so it always ties with the swapped pair.',
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

export function measuredTable(answer) {
  const heads = Object.keys(answer.counts);
  return element('table', { class: 'pr-measured' },
    element('caption', { text: t`${answer.examples} examples of the Primer; how often each head says yes` }),
    element('thead', {}, element('tr', {}, element('th', { scope: 'col', text: TEXT.second }),
      ...heads.map((head) => element('th', { scope: 'col', text: t`${answer.answering[head]} says “${HEADS[head].yes}”` })))),
    element('tbody', {}, ...Object.entries(KINDS).map(([kind, [name, meaning]]) => element('tr', { 'data-kind': kind },
      element('th', { scope: 'row', title: meaning, text: name }),
      ...heads.map((head) => element('td', { 'data-head': head },
        element('span', { class: 'pr-chance', text: t`${answer.counts[head][kind]} of ${answer.examples}` }),
        bar(answer.counts[head][kind] / answer.examples), element('span', { class: 'pr-tiny', text: TRUTH[head][kind] })))))));
}

/** A cross-encoder against a bi-encoder: how often the true pair scores above another one of the same example. */
export function alikeTable(answer) {
  const kinds = ['other', 'same', 'swapped'];
  const rows = Object.entries(answer.wins).map(([judge, found]) => {
    const head = HEADS[judge];
    const who = head ? t`${head.title} (${answer.answering[judge]})` : t`${judge === 'cls' ? TEXT.bi_cls : TEXT.bi_mean} (${answer.model})`;
    return element('tr', { 'data-judge': judge },
      element('th', { scope: 'row', text: who }), element('td', { text: head ? TEXT.cross : TEXT.bi }),
      ...kinds.map((kind) => {
        const { won, tied } = found[kind];
        return element('td', { 'data-against': kind, 'data-won': won, 'data-tied': tied },
          element('span', { class: 'pr-chance', text: tied ? t`${won} of ${answer.examples}, ${tied} ties` : t`${won} of ${answer.examples}` }),
          bar((won + tied / 2) / answer.examples, 'half'));
      }));
  });
  return element('div', { class: 'pr-scroll', tabindex: '0', role: 'region', 'aria-label': t`A cross-encoder against a bi-encoder` },
    element('table', { class: 'pr-measured pr-wins' },
      element('caption', { text: t`The same ${answer.examples} examples, read together and read alone` }),
      element('thead', {}, element('tr', {}, ...[TEXT.judge, TEXT.reads, ...kinds.map((kind) => TEXT.above[kind])].map((text) => element('th', { scope: 'col', text })))),
      element('tbody', {}, ...rows)),
    element('p', { class: 'pr-small', text: TEXT.legend }));
}
