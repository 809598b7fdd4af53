// The Pairs tab: two texts under next sentence and sentence order, their cosine, and their input.
const { element, format, sentence, onSentence, question, asker, write } = window.Cloze;
const TEXT = {
  title: 'Do these two belong together?',
  intro: 'BERT learnt to tell a true next sentence from a random one, ALBERT to tell the right order of two neighbours from the swapped one. '
    + 'A random sentence is usually about something else, so the first task can be passed by topic alone; the second cannot.',
  silent: 'The server does not answer. Is it still running?',
};
const HEADS = {
  next_sentence: { title: 'Next sentence', yes: 'next', no: 'random', family: 'BERT', recipe: 'bert-mini' },
  sentence_order: { title: 'Sentence order', yes: 'in order', no: 'swapped', family: 'ALBERT', recipe: 'albert-mini' },
};
const KINDS = {
  next: ['Real next', 'the sentence that follows in the text'],
  swapped: ['Swapped', 'the same two, the other way round'],
  same: ['Same topic', 'another sentence of the passage, no neighbour'],
  other: ['Random', 'a sentence from another book of the Primer'],
};
const TRUTH = {
  next_sentence: { next: 'right: next', swapped: 'right: not next (no such pair in its training)', same: 'right: not next (no such pair in its training)', other: 'right: random' },
  sentence_order: { next: 'right: in order', swapped: 'right: swapped', same: 'no such pair in its training', other: 'no such pair in its training' },
};
const TRAINED = { next_sentence: ['same_right', 'other_right', 'other_wrong'], sentence_order: ['same_right', 'same_wrong'] };
const SEGMENTS = {
  table: 'The segment number picks a learnt vector that is added to each piece.',
  scores: 'This family has no segment table: the attention scores ask only whether two pieces stand in the same text.',
  none: 'This family has no segments: only the special pieces part the texts, and the numbers are not used.',
};
const SECOND = 'Most people there speak French.';
const OWN = 'Farmers feed their hens with corn.'; // the other topic until an example is taken

function loadStyle() {
  if (document.querySelector('link[href="/cloze/pairs.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/pairs.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

function bar(value, kind = '') {
  const fill = element('span', { class: 'pr-fill' });
  fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return element('span', { class: `pr-bar ${kind}`, 'aria-hidden': 'true' }, fill);
}

function lacking(head) {
  const { title, family, recipe } = HEADS[head];
  return element('section', { class: 'pr-head lacking', 'data-head': head },
    element('h3', { text: title }),
    element('p', { text: `No model with a ${title.toLowerCase()} head is installed. Train one: choose ${family} in the Train tab, or run` }),
    element('pre', { class: 'code', tabindex: '0', text: `python -m core_models.zoo build ${recipe}` }));
}

function headCard(head, found) {
  const { title, yes } = HEADS[head];
  const { labels, probabilities } = found.now;
  const first = probabilities[0] >= 0.5;
  return element('section', { class: 'pr-head', 'data-head': head },
    element('h3', { text: title }),
    element('p', { class: 'pr-model', text: `asked: ${found.model}` }),
    element('p', { class: 'pr-answer' }, element('b', { text: first ? labels[0] : labels[1] }),
      element('span', { text: ` ${format.percent(Math.max(...probabilities))}` })),
    bar(probabilities[0], first ? '' : 'no'),
    element('p', { class: 'pr-small', title: format.exact(probabilities[0]), 'data-yes': probabilities[0], text: `“${yes}” ${format.percent(probabilities[0])}` }));
}

/** The 2 x 2 for one head. */
function square(head, found, cells) {
  const { title, yes } = HEADS[head];
  const cell = (name) => {
    const chance = found.cells[name];
    const trained = TRAINED[head].includes(name);
    return element('td', { class: trained ? '' : 'unseen', 'data-cell': name, title: cells[name].join('  →  ') },
      element('span', { class: 'pr-chance', text: format.percent(chance) }), bar(chance, chance >= 0.5 ? '' : 'no'),
      element('span', { class: 'pr-tiny', text: trained ? 'in its training' : 'never in its training' }));
  };
  const points = (value) => `${value < 0 ? '−' : ''}${Math.abs(value * 100).toFixed(1)} points`;
  return element('div', { class: 'pr-square', 'data-head': head },
    element('table', {},
      element('caption', { text: `${title}: probability “${yes}” (${found.model})` }),
      element('thead', {}, element('tr', {}, element('td'), element('th', { scope: 'col', text: 'first → second' }), element('th', { scope: 'col', text: 'second → first' }))),
      element('tbody', {},
        element('tr', {}, element('th', { scope: 'row', text: 'Same topic' }), cell('same_right'), cell('same_wrong')),
        element('tr', {}, element('th', { scope: 'row', text: 'Other topic' }), cell('other_right'), cell('other_wrong')))),
    element('p', { class: 'pr-effects' }, 'Another topic costs ', element('b', { 'data-effect': 'topic', text: points(found.effects.topic) }),
      ', the wrong order ', element('b', { 'data-effect': 'order', text: points(found.effects.order) }), '.'));
}

const NOTICED = 0.1; // a smaller change says nothing

function verdict(heads) {
  const say = (head, name) => {
    if (!heads[head]) return '';
    const { topic, order } = heads[head].effects;
    if (Math.max(Math.abs(topic), Math.abs(order)) < NOTICED) return `The ${name} head hardly tells these pairs apart.`;
    if (Math.abs(topic) > 2 * Math.abs(order)) return `On these texts the ${name} head reads the topic and hardly the order.`;
    if (Math.abs(order) > 2 * Math.abs(topic)) return `On these texts the ${name} head reads the order and hardly the topic.`;
    return `On these texts the ${name} head minds both the topic and the order.`;
  };
  return `${say('next_sentence', 'next-sentence')} ${say('sentence_order', 'sentence-order')}`.trim();
}

function inputRow({ pieces }) {
  return element('ol', { class: 'pr-pieces', 'aria-label': 'The input' }, ...pieces.map((piece) => element('li', {
    class: `pr-piece seg-${Math.min(piece.segment, 2)}${piece.special ? ' special' : ''}${piece.unknown ? ' unknown' : ''}`,
    'data-id': piece.id, 'data-segment': piece.segment, title: `${piece.piece}, id ${piece.id}, segment ${piece.segment}`,
  }, element('bdi', { text: piece.piece }), element('small', { text: piece.segment }))));
}

function cosines(answer) {
  const { pair, other } = answer.similarity;
  const line = (name, text, value, compare) => element('div', { class: 'pr-cosine', 'data-cosine': name },
    element('b', { text }), value === null ? element('span', { class: 'pr-small', text: 'This model reads from left to right: its first piece sees nothing of the text.' }) : bar(value),
    element('span', { class: 'pr-number', text: value === null ? '' : value.toFixed(3) }),
    element('span', { class: 'pr-small', text: compare === null ? '' : `with a text on another topic: ${compare.toFixed(3)}` }));
  return [line('cls', '[CLS]', pair.cls, other.cls), line('mean', 'Mean', pair.mean, other.mean)];
}

function measuredTable(answer) {
  const heads = Object.keys(answer.counts);
  return element('table', { class: 'pr-measured' },
    element('caption', { text: `${answer.examples} examples of the Primer; how often each head says yes` }),
    element('thead', {}, element('tr', {}, element('th', { scope: 'col', text: 'The second text is' }),
      ...heads.map((head) => element('th', { scope: 'col', text: `${answer.answering[head]} says “${HEADS[head].yes}”` })))),
    element('tbody', {}, ...Object.entries(KINDS).map(([kind, [name, meaning]]) => element('tr', { 'data-kind': kind },
      element('th', { scope: 'row', title: meaning, text: name }),
      ...heads.map((head) => element('td', { 'data-head': head },
        element('span', { class: 'pr-chance', text: `${answer.counts[head][kind]} of ${answer.examples}` }),
        bar(answer.counts[head][kind] / answer.examples), element('span', { class: 'pr-tiny', text: TRUTH[head][kind] })))))));
}

export async function mount(view) {
  await loadStyle();
  const state = { number: 0, example: null, kind: 'own', wanted: null };
  let asked = { rev: 0, key: '' };
  let exampleRev = 0;
  let measureRev = 0;
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const second = element('textarea', { id: 'pr-second', class: 'pr-text', rows: '1', spellcheck: 'false', autocomplete: 'off' });
  second.value = SECOND;
  const kinds = new Map(Object.entries(KINDS).map(([kind, [text, title]]) => [kind, element('button', {
    type: 'button', class: 'quiet outlined', 'data-kind': kind, title, text, 'aria-pressed': 'false', onclick: () => choose(kind),
  })]));
  const another = element('button', { type: 'button', class: 'quiet', id: 'pr-another', text: 'Another example', onclick: () => fetchExample(state.kind === 'own' ? 'next' : state.kind) });
  const now = element('div', { class: 'pr-heads' });
  const squares = element('div', { class: 'pr-squares' });
  const said = element('p', { class: 'summary', role: 'status' });
  const about = element('p', { class: 'pr-small' });
  const measureButton = element('button', { type: 'button', class: 'quiet outlined', id: 'pr-measure', text: 'Ask about 24 examples' });
  const measured = element('div', { id: 'pr-measured' });
  const cosineBox = element('div', { class: 'pr-cosines' });
  const inputBox = element('div');
  const inputNote = element('p', { class: 'pr-small' });
  const code = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: 'Copy' });
  const save = element('button', { type: 'button', class: 'quiet outlined', 'data-save': 'csv', text: 'Save as CSV' });
  const body = element('div', { class: 'pr-body' },
    element('section', { class: 'card' }, now),
    element('section', { class: 'card' }, element('h3', { text: 'Topic or order?' }), said, squares, about,
      element('div', { class: 'pr-row' }, measureButton,
        element('span', { class: 'pr-small', text: 'One pair proves little. The shipped models have read the Primer, so this is how they do on what they know.' })),
      measured),
    element('section', { class: 'card' }, element('h3', { text: 'How alike, each read alone?' }), cosineBox,
      element('p', { class: 'pr-small' }, 'The heads above read both texts at once (a cross-encoder). Here each text is read alone and only the vectors meet (a bi-encoder). ',
        element('b', { text: 'This model was not trained for similarity' }), ': even unrelated texts may look alike, so only differences say anything.')),
    element('section', { class: 'card' }, element('h3', { text: 'What the model reads' }), inputBox, inputNote),
    element('div', { class: 'pr-save' }, save, element('details', {}, element('summary', { text: 'The code that recomputes this' }), code, copy)));
  view.root.replaceChildren(element('div', { class: 'pr' },
    element('h2', { text: TEXT.title }), element('p', { class: 'pr-intro', text: TEXT.intro }),
    element('section', { class: 'card pr-top' },
      element('label', { class: 'pr-label', for: 'pr-second', text: 'Second text (the first one is the sentence above)' }), second,
      element('div', { class: 'pr-row', role: 'group', 'aria-label': 'What to try' },
        element('span', { class: 'pr-small', text: 'Try from the Primer' }), ...kinds.values(), another)),
    problem, body));

  const fail = (message) => {
    problem.hidden = !message;
    problem.textContent = message ?? '';
    if (message) view.root.dataset.state = 'error';
  };
  const silent = () => fail(TEXT.silent);
  const send = asker(view, 'ask', silent);
  const sendExample = asker(view, 'example', silent);

  function base() {
    const { example, kind } = state;
    if (example && kind !== 'own') return { first: example.first, next: example.next, other: example.other };
    return { first: sentence.text, next: second.value, other: example?.other ?? OWN };
  }

  function ask() {
    const key = JSON.stringify([sentence.text, sentence.model, second.value, base()]);
    if (!sentence.text || key === asked.key) return;
    if (sentence.error) { fail(sentence.error); body.hidden = true; asked = { rev: 0, key }; return; }
    const data = question({ second: second.value, base: base() });
    asked = { rev: data.rev, key };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  // --- examples ---------------------------------------------------------------------------------

  function fetchExample(kind) {
    state.wanted = kind;
    const data = question({ number: state.number });
    state.number += 1;
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
    if (sentence.text === a) ask();
    else write('sentence-text', a);
  }

  function showKind() {
    for (const [kind, button] of kinds) button.setAttribute('aria-pressed', String(kind === state.kind));
  }

  const fit = () => { second.style.height = 'auto'; second.style.height = `${second.scrollHeight + 2}px`; };
  second.addEventListener('input', () => { state.kind = 'own'; showKind(); fit(); ask(); });
  measureButton.addEventListener('click', () => {
    const data = question();
    measureRev = data.rev;
    measureButton.disabled = true;
    measureButton.textContent = 'Asking…';
    view.send('measure', data);
  });
  copy.addEventListener('click', async () => {
    const { copyText } = await import('./attention-export.js');
    copy.textContent = await copyText(code.textContent, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
  });
  save.addEventListener('click', () => view.send('save', question({ second: second.value, base: base() })));

  // --- drawing ----------------------------------------------------------------------------------

  function draw() {
    const { heads, cells, answering } = answered;
    now.replaceChildren(...Object.keys(HEADS).map((head) => (answering[head] ? headCard(head, heads[head]) : lacking(head))));
    squares.replaceChildren(...Object.keys(heads).map((head) => square(head, heads[head], cells)));
    said.textContent = verdict(heads);
    const texts = base();
    about.textContent = state.kind === 'own'
      ? `Your second text is taken as the true continuation of your first. The other topic: “${texts.other}”`
      : `First: “${texts.first}” Second: “${texts.next}” The other topic: “${texts.other}”`;
    cosineBox.replaceChildren(...cosines(answered));
    inputBox.replaceChildren(inputRow(answered.input));
    inputNote.textContent = `${answered.model}: ${answered.input.pieces.length} pieces${answered.input.truncated ? ', the rest was cut off' : ''}. `
      + `The small number is the segment. ${SEGMENTS[answered.input.segments]}`;
    code.textContent = answered.code;
    for (const button of [measureButton, save]) button.hidden = !Object.keys(heads).length;
  }

  onSentence(view, () => {
    // Text that no example wrote is the visitor's own.
    if (state.example && state.kind !== 'own') {
      const expected = state.kind === 'swapped' ? state.example.next : state.example.first;
      if (sentence.text !== expected && asked.rev && asked.text === expected) { state.kind = 'own'; showKind(); }
      asked.text = sentence.text;
    }
    ask();
  });

  view.onValue(async () => {
    const answer = view.value;
    if (!answer) return;
    if (answer.kind === 'file') {
      const { download } = await import('./attention-export.js');
      download(answer.name, answer.text, answer.type);
    } else if (answer.rev === exampleRev) {
      exampleRev = 0;
      fail(answer.error);
      if (answer.error) return;
      state.example = answer;
      choose(state.wanted);
    } else if (answer.rev === measureRev) {
      measureRev = 0;
      measureButton.disabled = false;
      measureButton.textContent = 'Ask about 24 examples';
      fail(answer.error);
      if (!answer.error) measured.replaceChildren(measuredTable(answer));
    } else if (answer.rev === asked.rev) {
      fail(answer.error);
      view.root.dataset.rev = answer.rev;
      body.hidden = Boolean(answer.error);
      if (answer.error) return;
      answered = answer;
      draw();
      view.root.dataset.state = 'ready';
    }
  });
  fit();
}
