// The Pairs tab: two texts under next sentence and sentence order, their cosine, and their input.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import { makeFigure } from '../../parts/figure.js';
import { EXPECTED, HEADS, KINDS, bar, constantNotes, cosines, effectWords, verdict } from './parts.js';

const { element, format, sentence, onSentence, question, asker, write, t, texts, message, language } = window.Cloze;
const TEXT = texts({
  title: 'Do these two belong together?',
  intro: 'BERT learnt to tell a true next sentence from a random one, ALBERT to tell the right order of two neighbours from the swapped one. '
    + 'A random sentence is usually about something else, so the first task can be passed by topic alone; the second cannot.',
  silent: 'The server does not answer. Is it still running?',
  trained: 'in its training', never: 'never in its training',
  right: 'first → second', wrong: 'second → first', same: 'Same topic', other: 'Other topic',
  input: 'The input', another: 'Another example', topic: 'Topic or order?', measure: 'Ask about 24 examples', asking: 'Asking…',
  little: 'One pair proves little. The shipped models have read the Primer, so this is how they do on what they know.',
  counted: 'This is no count of right answers: point at a bar, or open the numbers, to see what would be right.',
  legend: 'A coin would win half of them. The cosine is the same both ways round, so it always ties with the swapped pair.',
  alike: 'How alike, each read alone?',
  cross: 'The heads above read both texts at once (a cross-encoder). Here each text is read alone and only the vectors meet (a bi-encoder).',
  untrained: 'This model was not trained for similarity: even unrelated texts may look alike, so only differences say anything.',
  blindOrder: 'A cosine is the same both ways round, so a bi-encoder cannot tell the order. Its gain is speed: 1,000 texts are read 1,000 times, a cross-encoder reads each of their 499,500 pairs.',
  reads: 'What the model reads', second: 'Second text (the first one is the sentence above)', tries: 'What to try', trying: 'Try',
  segments: {
    table: 'The segment number picks a learnt vector that is added to each piece.',
    scores: 'This family has no segment table: the attention scores ask only whether two pieces stand in the same text.',
    none: 'This family has no segments: only the special pieces part the texts, and the numbers are not used.',
  },
  cut: 'The rest was cut off.',
  foreign: {
    next_sentence: { en: 'No model with a next sentence head that reads English is installed.', zh: 'No model with a next sentence head that reads Chinese is installed.' },
    sentence_order: { en: 'No model with a sentence order head that reads English is installed.', zh: 'No model with a sentence order head that reads Chinese is installed.' },
  },
  lacking: {
    next_sentence: 'No model with a next sentence head is installed. Train one: choose BERT in the Train tab, or run',
    sentence_order: 'No model with a sentence order head is installed. Train one: choose ALBERT in the Train tab, or run',
  },
});
const TRAINED = { next_sentence: ['same_right', 'other_right', 'other_wrong'], sentence_order: ['same_right', 'same_wrong'] };
const MOST_KEPT = 1_500; // characters of a second text in the address
const MOST_EXAMPLE = 10_000;
// Until an example is taken, in the language of the model.
const OWN = {
  en: { second: 'Most people there speak French.', other: 'Farmers feed their hens with corn.' },
  zh: { second: '那里的大多数人说法语。', other: '农民用玉米喂鸡。' },
};

function lacking(head, { others, language: read }) {
  const { title, recipe } = HEADS[head];
  const other = others[head];
  if (other) {
    return element('section', { class: 'pr-head lacking', 'data-head': head },
      element('h3', { text: title }),
      element('p', { text: TEXT.foreign[head][read] }),
      element('p', { class: 'pr-small', text: t`${other} has such a head, but it reads another language, so it is not asked.` }));
  }
  return element('section', { class: 'pr-head lacking', 'data-head': head },
    element('h3', { text: title }),
    element('p', { text: TEXT.lacking[head] }),
    element('pre', { class: 'code', tabindex: '0', text: `python -m core_models.zoo build ${recipe}` }));
}

function reliability(found) {
  if (!found) return null;
  const share = format.percent(found.right);
  const text = found.guesses
    ? t`Of ${found.questions} held-out questions ${share} answered right: no better than guessing.`
    : t`Of ${found.questions} held-out questions ${share} answered right.`;
  return element('p', { class: 'pr-small pr-held', 'data-guesses': found.guesses, text });
}

function headCard(head, found) {
  const { title, yes } = HEADS[head];
  const { labels, probabilities } = found.now;
  const first = probabilities[0] >= 0.5;
  return element('section', { class: 'pr-head', 'data-head': head },
    element('h3', { text: title }),
    element('p', { class: 'pr-model', text: t`asked: ${found.model}` }),
    element('p', { class: 'pr-answer' }, element('b', { text: message(first ? labels[0] : labels[1]) }),
      element('span', { text: ` ${format.percent(Math.max(...probabilities))}` })),
    bar(probabilities[0], first ? '' : 'no'),
    element('p', { class: 'pr-small', title: format.exact(probabilities[0]), 'data-yes': probabilities[0], text: t`“${yes}” ${format.percent(probabilities[0])}` }),
    reliability(found.reliability));
}

/** The 2 x 2 for one head. */
function square(head, found, cells) {
  const { title, yes } = HEADS[head];
  const cell = (name) => {
    const chance = found.cells[name];
    const trained = TRAINED[head].includes(name);
    return element('td', { class: trained ? '' : 'unseen', 'data-cell': name, title: cells[name].join('  →  ') },
      element('span', { class: 'pr-chance', text: format.percent(chance) }), bar(chance, chance >= 0.5 ? '' : 'no'),
      element('span', { class: 'pr-tiny', text: trained ? TEXT.trained : TEXT.never }));
  };
  return element('div', { class: 'pr-square', 'data-head': head },
    element('table', {},
      element('caption', { text: t`${title}: probability “${yes}” (${found.model})` }),
      element('thead', {}, element('tr', {}, element('td'), element('th', { scope: 'col', text: TEXT.right }), element('th', { scope: 'col', text: TEXT.wrong }))),
      element('tbody', {},
        element('tr', {}, element('th', { scope: 'row', text: TEXT.same }), cell('same_right'), cell('same_wrong')),
        element('tr', {}, element('th', { scope: 'row', text: TEXT.other }), cell('other_right'), cell('other_wrong')))),
    element('p', { class: 'pr-effects', 'data-topic': found.effects.topic, 'data-order': found.effects.order,
      text: effectWords(yes, found.effects) }));
}

function inputRow({ pieces }) {
  return element('ol', { class: 'pr-pieces', 'aria-label': TEXT.input }, ...pieces.map((piece) => element('li', {
    class: `pr-piece seg-${Math.min(piece.segment, 2)}${piece.special ? ' special' : ''}${piece.unknown ? ' unknown' : ''}`,
    'data-id': piece.id, 'data-segment': piece.segment, title: t`${piece.piece}, id ${piece.id}, segment ${piece.segment}`,
  }, element('bdi', { text: piece.piece }), element('small', { text: piece.segment }))));
}

export async function mount(view) {
  const kept = window.Cloze.kept('pairs') ?? {}; // anything may stand there
  const state = { number: 0, shown: null, example: null, kind: 'own', wanted: null, own: OWN.en };
  let asked = { rev: 0, key: '' };
  let exampleRev = 0;
  let fetching = null; // the number of the example under way
  let measureRev = 0;
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const second = element('textarea', { id: 'pr-second', class: 'pr-text', rows: '1', spellcheck: 'false', autocomplete: 'off' });
  second.value = typeof kept.second === 'string' && kept.second.trim() ? kept.second.slice(0, MOST_KEPT) : OWN.en.second;
  const kinds = new Map(Object.entries(KINDS).map(([kind, [text, title]]) => [kind, element('button', {
    type: 'button', class: 'quiet outlined', 'data-kind': kind, title, text, 'aria-pressed': 'false', onclick: () => choose(kind),
  })]));
  const another = element('button', { type: 'button', class: 'quiet', id: 'pr-another', text: TEXT.another, onclick: () => fetchExample(state.kind === 'own' ? 'next' : state.kind) });
  const expected = element('p', { class: 'pr-small', id: 'pr-expected', role: 'status', hidden: true });
  const now = element('div', { class: 'pr-heads', 'data-picture': '' });
  const squares = element('div', { class: 'pr-squares' });
  const said = element('p', { class: 'summary', role: 'status' });
  const aboutTopic = element('p', { class: 'pr-small' });
  const measureButton = element('button', { type: 'button', class: 'quiet outlined', id: 'pr-measure', text: TEXT.measure });
  const notes = element('div');
  const saidBars = makeFigure({ name: 'cloze-pairs-said' });
  const wins = makeFigure({ name: 'cloze-pairs-wins' });
  const measured = element('div', { id: 'pr-measured', hidden: true }, notes, saidBars.root,
    element('p', { class: 'pr-small', text: TEXT.counted }), element('div', { id: 'pr-wins' }, wins.root), element('p', { class: 'pr-small', text: TEXT.legend }));
  const cosineBox = element('div', { class: 'pr-cosines' });
  const inputBox = element('div');
  const inputNote = element('p', { class: 'pr-small' });
  const code = makeCode();
  const files = makeSaver((what) => {
    const data = question({ second: second.value, base: base(), what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  const body = element('div', { class: 'pr-body' },
    element('section', { class: 'card' }, now),
    fold(TEXT.topic, said, squares, aboutTopic,
      element('div', { class: 'pr-row' }, measureButton,
        element('span', { class: 'pr-small', text: TEXT.little })),
      measured),
    fold(TEXT.alike, cosineBox,
      element('p', { class: 'pr-small', text: TEXT.cross }), element('p', { class: 'pr-small' }, element('b', { text: TEXT.untrained })),
      element('p', { class: 'pr-small', text: TEXT.blindOrder })),
    fold(TEXT.reads, inputBox, inputNote),
    about(TEXT.intro),
    element('div', { class: 'pr-save' }, ...files.buttons, code.root));
  view.root.replaceChildren(element('div', { class: 'pr' },
    labHead(TEXT.title, element('div', { class: 'pr-row', role: 'group', 'aria-label': TEXT.tries },
      element('span', { class: 'pr-small', text: TEXT.trying }), ...kinds.values(), another)),
    element('section', { class: 'card pr-top' },
      element('label', { class: 'pr-label', for: 'pr-second', text: TEXT.second }), second, expected),
    problem, body));

  const fail = (text) => {
    problem.hidden = !text;
    problem.textContent = text ?? '';
    if (text) view.root.dataset.state = 'error';
  };
  const silent = () => fail(TEXT.silent);
  const send = asker(view, 'ask', silent);
  const sendExample = asker(view, 'example', silent);

  function base() {
    const { example, kind } = state;
    if (example && kind !== 'own') return { first: example.first, next: example.next, other: example.other };
    return { first: sentence.text, next: second.value, other: example?.other ?? state.own.other };
  }

  function ask() {
    const key = JSON.stringify([sentence.text, sentence.model, second.value, base()]);
    if (key === asked.key || !(sentence.text || sentence.error)) return;
    // Also where the sentence was emptied: old answers must not stay.
    if (sentence.error) { fail(message(sentence.error)); body.hidden = true; asked = { rev: 0, key }; return; }
    const data = question({ second: second.value, base: base() });
    asked = { rev: data.rev, key };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  function keep() {
    const { kind, shown } = state;
    const own = kind === 'own' && second.value !== state.own.second && second.value.length <= MOST_KEPT;
    window.Cloze.keep('pairs', {
      ...(shown !== null && { example: shown }), ...(kind !== 'own' && { kind }), ...(own && { second: second.value }),
    });
  }

  // --- examples ---------------------------------------------------------------------------------

  function fetchExample(kind) {
    state.wanted = kind;
    const data = question({ number: state.number });
    fetching = state.number;
    state.number = (state.number + 1) % MOST_EXAMPLE;
    exampleRev = data.rev;
    sendExample(data);
  }

  function choose(kind) {
    if (!state.example) { fetchExample(kind); return; }
    state.kind = kind;
    const { first, next } = state.example;
    const [a, b] = kind === 'swapped' ? [next, first] : [first, state.example[kind]];
    second.value = b;
    fit();
    showKind();
    keep();
    if (sentence.text === a) ask();
    else write('sentence-text', a);
  }

  function showKind() {
    for (const [kind, button] of kinds) button.setAttribute('aria-pressed', String(kind === state.kind));
    expected.hidden = !Object.hasOwn(EXPECTED, state.kind);
    expected.textContent = EXPECTED[state.kind] ?? '';
  }

  const fit = () => { second.style.height = 'auto'; second.style.height = `${second.scrollHeight + 2}px`; };
  // What is typed stays, also where an example is under way.
  second.addEventListener('input', () => { exampleRev = 0; state.kind = 'own'; showKind(); fit(); keep(); ask(); });
  measureButton.addEventListener('click', () => {
    const data = question();
    measureRev = data.rev;
    measureButton.disabled = true;
    measureButton.textContent = TEXT.asking;
    view.send('measure', data);
  });

  // --- drawing ----------------------------------------------------------------------------------

  function draw() {
    const { heads, cells, answering } = answered;
    now.replaceChildren(...Object.keys(HEADS).map((head) => (answering[head] ? headCard(head, heads[head]) : lacking(head, answered))));
    squares.replaceChildren(...Object.keys(heads).map((head) => square(head, heads[head], cells)));
    said.textContent = verdict(heads);
    const used = base();
    aboutTopic.textContent = state.kind === 'own'
      ? t`Your second text is taken as the true continuation of your first. The other topic: “${used.other}”`
      : t`First: “${used.first}” Second: “${used.next}” The other topic: “${used.other}”`;
    cosineBox.replaceChildren(...cosines(answered));
    inputBox.replaceChildren(inputRow(answered.input));
    inputNote.textContent = [
      t`${answered.model}: ${answered.input.pieces.length} pieces. The small number is the segment.`,
      ...(answered.input.truncated ? [TEXT.cut] : []), TEXT.segments[answered.input.segments],
    ].join(language === 'zh' ? '' : ' ');
    code.show(answered.code);
    measureButton.hidden = !Object.keys(heads).length;
  }

  /** A model of another language gets texts that it can read. */
  function speak() {
    const own = OWN[sentence.card?.language] ?? state.own;
    if (own === state.own) return;
    if (second.value === state.own.second) { second.value = own.second; fit(); }
    if (state.example && OWN[state.example.language] !== own) Object.assign(state, { example: null, shown: null, kind: 'own' });
    state.own = own;
    showKind();
  }

  onSentence(view, () => {
    speak();
    // Text that no example wrote is the visitor's own.
    if (state.example && state.kind !== 'own') {
      const expected = state.kind === 'swapped' ? state.example.next : state.example.first;
      if (sentence.text !== expected && asked.rev && asked.text === expected) { state.kind = 'own'; showKind(); keep(); }
      asked.text = sentence.text;
    }
    ask();
  });

  view.onValue(() => {
    const answer = view.value;
    if (!answer || files.take(answer)) return;
    if (answer.rev === exampleRev) {
      exampleRev = 0;
      fail(message(answer.error));
      if (answer.error) return;
      [state.example, state.shown] = [answer, fetching];
      if (state.wanted === 'own') ask();
      else choose(state.wanted);
    } else if (answer.rev === measureRev) {
      measureRev = 0;
      measureButton.disabled = false;
      measureButton.textContent = TEXT.measure;
      fail(message(answer.error));
      if (answer.error) return;
      measured.hidden = false;
      notes.replaceChildren(...constantNotes(answer));
      saidBars.show(answer.figures.said);
      wins.show(answer.figures.wins);
    } else if (answer.rev === asked.rev) {
      fail(message(answer.error));
      view.root.dataset.rev = answer.rev;
      body.hidden = Boolean(answer.error);
      if (answer.error) return;
      answered = answer;
      draw();
      view.root.dataset.state = 'ready';
    }
  });
  fit();
  if (wholeOr(kept.example, 0, MOST_EXAMPLE, null) !== null) {
    state.number = kept.example;
    fetchExample(Object.hasOwn(KINDS, kept.kind ?? '') ? kept.kind : 'own');
  }
}
