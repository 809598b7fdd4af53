// The Tokenizers tab: the sentence of the page, cut by each kind of vocabulary.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeCode, makeSaver } from '../../parts/lab-files.js';

const { element, format, sentence, onSentence, question, asker, write, t, texts, message, phrase } = window.Cloze;
const TEXT = texts({
  title: 'One line, cut four ways',
  intro: 'A model never sees words, only pieces of its vocabulary. The kind of vocabulary decides where the cuts are, '
    + 'what is unknown, and what counts as a whole word.',
  templates: 'Where the special pieces go in the published models',
  templatesIntro: 'A and B stand for the texts. The small number is the segment. Models that are installed here may have a vocabulary of their own; where one differs, it stands below its family.',
  bytes: 'Bytes',
  ids: 'Ids',
  special: 'Special pieces',
  silent: 'The server does not answer. Is it still running?',
  words: 'Pieces of one word stand in one box; neighbours change colour.',
  unknown: 'unknown', pieces: 'pieces', wordCount: 'words', perWord: 'per word', perCharacter: 'per character',
  cut: 'Cut off after 256 pieces.', wholeWord: 'Whole word', unknownRule: 'Unknown', every: 'Every piece', table: 'The table',
  columns: ['Vocabulary', 'Piece', 'Id', 'UTF-8 bytes', 'Word'], tries: 'What to try', attempt: 'Try', lower: 'lower case', keeps: 'keeps case', left: 'padding on the left', right: 'padding on the right',
});
const EXAMPLES = [
  [t`A long word`, 'Unbelievable! They reopened the antislavery museum.'],
  [t`An accent`, 'The café’s crème brûlée wasn’t re-heated.'],
  [t`Chinese`, '北京是中国的首都，位于华北平原的北部。'],
  [t`Both`, 'In Chinese, Beijing is written 北京 .'],
  [t`Unknown signs`, 'I like 龘 and 😀 very much.'],
];
const SEGMENTS = texts({ table: 'segment table', scores: 'segments in the scores', none: 'no segments' });
const SHOWN = ['ids', 'bytes', 'special'];

function makeSwitch(id, text, on, changed) {
  const button = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': String(on), id },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text }));
  button.addEventListener('click', () => {
    const next = button.getAttribute('aria-checked') !== 'true';
    button.setAttribute('aria-checked', String(next));
    changed(next);
  });
  return button;
}

function pieceOf(piece) {
  const kind = piece.special ? 'special' : piece.unknown ? 'unknown' : piece.masked ? 'masked' : '';
  const face = element('span', { class: 'tok-face' },
    piece.prefix ? element('span', { class: 'tok-prefix', text: piece.prefix }) : null,
    element('span', { text: piece.text }),
    piece.unknown ? element('span', { class: 'tok-flag', text: TEXT.unknown }) : null);
  return element('span', {
    class: `tok-piece ${kind}`, 'data-id': piece.id, 'data-piece': piece.piece,
    title: [piece.piece, `id ${piece.id}`, piece.bytes && t`bytes: ${piece.bytes.split(' ').length}`].filter(Boolean).join(' · '),
  },
  face,
  element('span', { class: 'tok-id', text: piece.id }),
  element('span', { class: 'tok-bytes', text: piece.bytes || '·' }));
}

/** Boxes of words: consecutive pieces of one word group stand in one list item. */
function wordsOf(row) {
  const items = [];
  let group = null;
  for (const piece of row.pieces) {
    const own = piece.word === null;
    if (own || !group || group.word !== piece.word) {
      group = { word: own ? Symbol('special') : piece.word, pieces: [], own, node: null };
      items.push(group);
    }
    group.pieces.push(piece);
  }
  return items.map(({ word, pieces, own }) => element('li', {
    class: own ? 'tok-word alone' : `tok-word ${word % 2 ? 'odd' : 'even'}`,
    'data-word': own ? '' : word,
  }, ...pieces.map(pieceOf)));
}

// A vocabulary of its kind, or the name of a model.
const titleOf = (row) => (row.title === row.kind_title ? message(row.title) : row.title);
const ratio = (value) => (value === null ? '–' : value.toFixed(2));

// The rules of a kind stand in its last row only.
function rowOf(row, most, rules) {
  const numbers = [
    ['pieces', TEXT.pieces, row.content], ['words', TEXT.wordCount, row.words], ['per word', TEXT.perWord, ratio(row.per_word)],
    ['per character', TEXT.perCharacter, ratio(row.per_character)], ['unknown', TEXT.unknown, row.unknown],
  ];
  const bar = element('span', { class: 'tok-fill' });
  bar.style.width = `${(100 * row.content) / most}%`;
  return element('section', { class: 'card tok-row', 'data-kind': row.kind, 'data-title': row.title },
    element('header', {},
      element('h3', { text: titleOf(row) }),
      element('span', { class: 'tok-note', text: [row.title === row.kind_title ? null : message(row.kind_title), message(row.source), t`${format.count(row.vocabulary)} pieces`].filter(Boolean).join(' · ') })),
    element('dl', { class: 'tok-numbers' }, ...numbers.map(([name, label, value]) => element('div', { 'data-number': name },
      element('dt', { text: label }), element('dd', { class: name === 'unknown' && value ? 'some' : '', text: value })))),
    element('span', { class: 'tok-bar', 'aria-hidden': 'true' }, bar),
    element('ol', { class: 'tok-words', 'aria-label': t`Pieces, ${titleOf(row)}` }, ...wordsOf(row)),
    row.truncated ? element('p', { class: 'tok-note', text: TEXT.cut }) : null,
    rules ? element('p', { class: 'tok-rule' }, element('b', { text: TEXT.wholeWord }), ' ', message(row.whole_word)) : null,
    rules ? element('p', { class: 'tok-rule' }, element('b', { text: TEXT.unknownRule }), ' ', message(row.unknown_rule)) : null);
}

function twin(rows) {
  return element('table', {},
    element('caption', { text: TEXT.every }),
    element('thead', {}, element('tr', {}, ...TEXT.columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...rows.flatMap((row) => row.pieces.map((piece) => element('tr', {},
      element('th', { scope: 'row', text: titleOf(row) }),
      element('td', { class: 'tok-raw', text: piece.piece }),
      element('td', { text: piece.id }),
      element('td', { class: 'tok-hex', text: piece.bytes }),
      element('td', { text: piece.word === null ? '–' : piece.word + 1 }))))));
}

function slots(list) {
  return element('span', { class: 'tok-slots' }, ...list.map(({ text, special, segment }) => element('span', {
    class: special ? 'tok-slot' : 'tok-slot text',
  }, element('span', { text }), element('small', { text: segment }))));
}

/** What an installed model does otherwise than the published ones of its family. */
function difference({ model, kind, lowercase, single, pair, padding, mask }) {
  const facts = [
    kind && message(kind), lowercase === undefined ? null : lowercase ? TEXT.lower : TEXT.keeps, single, pair,
    padding && (padding === 'left' ? TEXT.left : TEXT.right), mask && t`gap ${mask}`,
  ];
  return element('span', { class: 'tok-note', 'data-model': model, text: t`${model} here: ${facts.filter(Boolean).join(' · ')}` });
}

function templates(list, differences) {
  return list.map((entry) => element('div', { class: 'tok-template' },
    element('div', { class: 'tok-shapes' }, slots(entry.single), slots(entry.pair),
      element('span', { class: 'tok-note', text: entry.padding === 'left' ? t`padding on the left, gap ${entry.mask}` : t`padding on the right, gap ${entry.mask}` })),
    element('ul', { class: 'tok-families' }, ...entry.families.map((family) => element('li', {},
      element('b', { text: family.title }),
      ' ', element('span', { text: [message(family.kind), family.lowercase ? TEXT.lower : TEXT.keeps, SEGMENTS[family.segments]].join(' · ') }),
      ...(differences[family.name] ?? []).flatMap((each) => [element('br'), difference(each)]))))));
}

export async function mount(view) {
  let asked = { rev: 0, key: '' };
  let known = false;
  let answered = null;
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const summary = element('p', { class: 'summary', role: 'status' });
  // The address holds which switches are off.
  const given = window.Cloze.kept('tokenizers')?.off;
  const off = new Set(Array.isArray(given) ? given.filter((name) => SHOWN.includes(name)) : []);
  const list = element('div', { 'data-picture': '', class: ['tok-list', ...SHOWN.filter((name) => !off.has(name)).map((name) => `show-${name}`)].join(' ') });
  const flag = (name) => makeSwitch(`tok-${name}`, TEXT[name], !off.has(name), (on) => {
    list.classList.toggle(`show-${name}`, on);
    if (on) off.delete(name); else off.add(name);
    window.Cloze.keep('tokenizers', off.size ? { off: [...off] } : {});
  });
  const templateBox = element('div', { class: 'tok-templates' });
  const twinBox = element('div', { class: 'tok-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.every });
  const details = element('details', {}, element('summary', { text: TEXT.table }), twinBox);
  const code = makeCode();
  const saver = makeSaver((what) => {
    const data = question({ what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  const files = element('div', { class: 'tok-save' }, ...saver.buttons, details, code.root);
  view.root.replaceChildren(element('div', { class: 'tok' },
    labHead(TEXT.title, element('div', { class: 'tok-presets', role: 'group', 'aria-label': TEXT.tries },
      element('span', { class: 'tok-note', text: TEXT.attempt }),
      ...EXAMPLES.map(([text, line]) => element('button', {
        type: 'button', class: 'quiet outlined', text, onclick: () => write('sentence-text', line),
      })))),
    problem, summary,
    element('div', { class: 'tok-switches' },
      ...SHOWN.map(flag)),
    list,
    fold(TEXT.templates,
      element('p', { class: 'tok-note', text: TEXT.templatesIntro }), templateBox),
    about(TEXT.intro, TEXT.words), files));

  const fail = (words) => {
    problem.hidden = !words;
    problem.textContent = words ?? '';
    if (words) view.root.dataset.state = 'error';
  };
  const show = (on) => { list.hidden = summary.hidden = files.hidden = !on; };
  const send = asker(view, 'ask', () => fail(TEXT.silent));

  onSentence(view, () => {
    const key = `${sentence.model}\n${sentence.text}`;
    if (key === asked.key || !(sentence.text || sentence.error)) return;
    // Also where the sentence was emptied: old cuts must not stay.
    if (sentence.error) { fail(message(sentence.error)); show(false); asked = { rev: 0, key }; return; }
    const data = question({ whole: !known });
    asked = { rev: data.rev, key };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  });

  const drawTwin = () => {
    if (details.open && answered) twinBox.replaceChildren(twin(answered.rows));
  };
  details.addEventListener('toggle', drawTwin);

  view.onValue(() => {
    const answer = view.value;
    if (!answer || saver.take(answer) || answer.rev !== asked.rev) return;
    fail(message(answer.error));
    view.root.dataset.rev = answer.rev;
    show(!answer.error);
    if (answer.error) return;
    answered = answer;
    known = known || Boolean(answer.templates);
    if (answer.templates) templateBox.replaceChildren(...templates(answer.templates, answer.differences));
    summary.textContent = phrase(answer.summary);
    const most = Math.max(1, ...answer.rows.map((row) => row.content));
    const last = new Map(answer.rows.map((row, n) => [row.kind, n]));
    list.replaceChildren(...answer.rows.map((row, n) => rowOf(row, most, last.get(row.kind) === n)));
    code.show(answer.code);
    drawTwin();
    view.root.dataset.state = 'ready';
  });
}
