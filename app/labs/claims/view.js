// The Claims tab: popular statements as cards; each is measured here, and a rule judges the numbers.
import { about, fold, labHead } from '../../parts/layout.js';
import { GUESSES, VERDICTS, guessed, makeCard, sayers } from './card.js';
import { makeSaver } from '../../parts/lab-files.js';

const { element, sentence, asker, question, t, texts, message } = window.Cloze;
const TEXT = texts({
  title: 'True or false?',
  intro: 'Statements that are often heard about these models, right ones and wrong ones. Guess first; then this machine measures, and a rule that '
    + 'stands on the card makes the verdict from the numbers.',
  silent: 'The server does not answer. Is it still running?',
  slow: 'No answer came. The machine may be busy; try again.',
  search: 'Search the statements', families: 'Family', all: 'All families', states: 'Show', tries: 'What to try', attempt: 'Try',
  every: 'All verdicts', open: 'not measured yet', right: 'judged right', wrong: 'judged wrong', partly: 'half right, or it depends', none: 'no verdict',
  runAll: 'Measure all shown', stop: 'Stop', reset: 'Forget my guesses', nothing: 'No statement fits. Change the search or the family.', clear: 'Show all statements',
  articles: 'The articles', file: 'Popular statements, measured',
  note: 'Five Chinese articles on these models, named by their headings. Most of what they say is right; the cards take up what can be measured.',
});
const ARTICLES = ['Encoder-only 架构', '2.3 基于 Encoder-only 架构的大语言模型', 'bert变种', 'LLM学习笔记 3.1 Encoder-only PLM', '3.1.1 BERT · 3.1.2 RoBERTa · 3.1.3 ALBERT'];
const TRY = [
  [t`Small, so fast?`, ['albert-faster', 'albert-first-layer', 'albert-sixth']],
  [t`What does a mask hide?`, ['bert-always-mask', 'bert-loss-where-replaced', 'ngram-three', 'electra-fifteen']],
  [t`How many parameters?`, ['bert-half-embeddings', 'electra-twice', 'roberta-340', 'deberta-v3-86']],
  [t`Topic or order?`, ['nsp-topic', 'nsp-order', 'sop-order', 'sop-label']],
  [t`Where are the positions?`, ['bert-relative-positions', 'deberta-no-absolute', 'xlnet-shuffles', 'xlnet-longer']],
];
const STATES = ['every', 'open', 'right', 'wrong', 'partly', 'none'];
const PATIENCE = 45_000;
const MOST_SEED = 9999;
const MOST_RUN = 12; // cards that a link measures again
const MOST_SEARCH = 60;
const TWO_COLUMNS = 900; // pixels

// What the address holds: filters, and "name.seed" of the cards that were measured.
function kept() {
  const found = window.Cloze.kept('claims') ?? {};
  const names = (value) => (Array.isArray(value) ? value.filter((each) => /^[a-z0-9-]{1,40}(\.\d{1,4})?$/.test(each)).slice(0, MOST_RUN) : []);
  return {
    family: typeof found.family === 'string' ? found.family.slice(0, 20) : '',
    state: STATES.includes(found.state) ? found.state : 'every',
    search: typeof found.search === 'string' ? found.search.slice(0, MOST_SEARCH) : '',
    only: names(found.only), ran: names(found.ran),
  };
}

const FEW = 4; // cards that a visitor meets first

export async function mount(view) {
  const { ran, ...state } = kept();
  const cards = new Map(); // name -> {card, drawn, result, guess, seed, model, text}
  const queue = [];
  let asked = 0;
  let running = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const fail = (words) => { problem.hidden = !words; problem.textContent = words ?? ''; };
  const search = element('input', { type: 'search', id: 'cl-search', class: 'cl-input', maxlength: MOST_SEARCH, placeholder: TEXT.search, 'aria-label': TEXT.search });
  search.value = state.search;
  const family = element('select', { id: 'cl-family', 'aria-label': TEXT.families });
  const which = element('select', { id: 'cl-state', 'aria-label': TEXT.states }, ...STATES.map((name) => element('option', { value: name, text: TEXT[name], selected: name === state.state })));
  const runAll = element('button', { type: 'button', class: 'primary', id: 'cl-all', text: TEXT.runAll });
  const stop = element('button', { type: 'button', class: 'quiet outlined', id: 'cl-stop', text: TEXT.stop, hidden: true });
  const score = element('p', { class: 'summary', id: 'cl-score', role: 'status' });
  const reset = element('button', { type: 'button', class: 'quiet', text: TEXT.reset, hidden: true });
  const none = element('p', { class: 'cl-none', hidden: true }, element('span', { text: TEXT.nothing }));
  const clear = element('button', { type: 'button', class: 'quiet outlined', id: 'cl-clear', text: TEXT.clear, hidden: true });
  const list = element('div', { class: 'cl-list' });
  const more = element('button', { type: 'button', class: 'quiet outlined', id: 'cl-more', hidden: true, onclick: () => { whole = true; filter(); } });
  let whole = false; // all cards that fit, and not the first few
  const saver = makeSaver((what) => {
    const done = [...cards.values()].filter(({ result }) => result && !result.doubt);
    const words = Object.fromEntries(done.map(({ card, result }) => [card.name, {
      statement: message(card.statement), said: VERDICTS[result.verdict], labels: result.numbers.map(({ label }) => message(label)),
    }]));
    const data = question({ what, cards: done.map(({ card, result, model }) => ({ name: card.name, seed: result.seed, model })), words: { ...words, title: TEXT.file } });
    view.send('save', data);
    return data.rev;
  }, fail);
  view.root.replaceChildren(element('div', { class: 'cl' },
    labHead(TEXT.title, element('div', { class: 'cl-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'cl-small', text: TEXT.attempt }),
      ...TRY.map(([text, names]) => element('button', { type: 'button', class: 'quiet outlined', text, onclick: () => set({ only: names, family: '', state: 'every', search: '' }) })))),
    element('div', { class: 'cl-row cl-bar' }, search, family, which, runAll, stop, clear),
    element('div', { class: 'cl-row' }, score, reset), problem, none, list, more,
    about(TEXT.intro),
    element('details', { class: 'cl-articles' }, element('summary', { text: TEXT.articles }), element('p', { class: 'cl-small', text: TEXT.note }),
      element('ol', {}, ...ARTICLES.map((text) => element('li', { lang: 'zh-Hans', text })))),
    fold(t`Files and code`, element('div', { class: 'cl-row' }, ...saver.buttons))));

  drawScore();

  // --- which cards are shown ------------------------------------------------------------------

  function fits({ card, result, text }) {
    if (state.only.length && !state.only.includes(card.name)) return false;
    if (state.family && card.family !== state.family) return false;
    if (state.search && !text.includes(state.search.toLowerCase())) return false;
    if (state.state === 'every') return true;
    if (state.state === 'open') return !result;
    return Boolean(result) && guessed(state.state, result.verdict);
  }
  const shown = () => [...cards.values()].filter(fits);
  const chosen = () => state.only.length || state.family || state.search || state.state !== 'every';

  function filter() {
    const here = shown();
    none.hidden = here.length > 0 || !cards.size;
    const few = whole || chosen() || [...cards.values()].some(({ result }) => result) ? here : here.slice(0, FEW);
    more.hidden = few.length === here.length;
    more.textContent = t`Show all ${here.length} claims`;
    place(few);
    clear.hidden = !chosen();
    view.root.dataset.shown = here.length;
  }

  // Columns of their own, so that a card that grows moves no other column. Moved only when the set changes: a move takes the focus.
  let placed = '';
  function place(here) {
    const wide = view.root.clientWidth >= TWO_COLUMNS && here.length > 1;
    const key = `${wide} ${here.map(({ card }) => card.name)}`;
    if (key === placed) return;
    placed = key;
    const columns = Array.from({ length: wide ? 2 : 1 }, (_, n) => element('div', { class: 'cl-column' },
      ...here.filter((_, at) => !wide || at % 2 === n).map(({ drawn }) => drawn.root)));
    list.replaceChildren(...columns);
  }
  new ResizeObserver(() => { if (cards.size && view.root.clientWidth) filter(); }).observe(view.root);

  function keep() {
    const measured = [...cards.values()].filter(({ result }) => result).slice(-MOST_RUN).map(({ card, result }) => `${card.name}.${result.seed}`);
    window.Cloze.keep('claims', {
      ...(state.family ? { family: state.family } : {}), ...(state.search ? { search: state.search } : {}),
      ...(state.state === 'every' ? {} : { state: state.state }), ...(state.only.length ? { only: state.only } : {}),
      ...(measured.length ? { ran: measured } : {}),
    });
  }

  function set(patch) {
    Object.assign(state, patch);
    if (document.activeElement !== search) search.value = state.search;
    family.value = state.family;
    which.value = state.state;
    filter();
    keep();
  }

  function drawScore() {
    const mine = [...cards.values()].filter(({ guess, result }) => guess && result && !result.doubt);
    const hits = mine.filter(({ guess, result }) => guessed(guess, result.verdict)).length;
    score.textContent = mine.length ? t`Your guesses: ${hits} of ${mine.length} right.` : '';
    reset.hidden = !mine.length;
    const judged = [...cards.values()].some(({ result }) => result && !result.doubt);
    for (const button of saver.buttons) button.disabled = !judged;
  }

  // --- measuring: one card at a time ------------------------------------------------------------

  function next() {
    stop.hidden = !(queue.length > 1 || (running && queue.length));
    if (running || !queue.length) return;
    const entry = queue.shift();
    const data = question({ name: entry.card.name, seed: entry.seed });
    entry.model = sentence.model;
    entry.drawn.wait(true);
    running = { rev: data.rev, entry, timer: setTimeout(() => give({ error: TEXT.slow, plain: true }), PATIENCE) };
    view.root.dataset.running = entry.card.name;
    view.send('run', data);
  }

  function give(answer) {
    const { entry, timer } = running;
    clearTimeout(timer);
    running = null;
    if (answer.error) entry.drawn.open(answer.plain ? answer.error : message(answer.error));
    else {
      entry.result = answer;
      entry.drawn.show(answer, entry.guess);
    }
    delete view.root.dataset.running;
    drawScore();
    keep();
    if (answer.error || state.state !== 'open') filter(); // a card must not vanish under the eyes that wait for it
    next();
  }

  function enter(entry, patch = {}) {
    if (entry.card.missing || queue.includes(entry) || running?.entry === entry) return;
    Object.assign(entry, patch);
    entry.drawn.wait(false);
    queue.push(entry);
    next();
  }

  function draw(answer) {
    family.replaceChildren(element('option', { value: '', text: TEXT.all }), ...answer.families.map((name) => element('option', { value: name, text: name })));
    if (!answer.families.includes(state.family)) state.family = '';
    for (const card of answer.cards) {
      const entry = { card, result: null, guess: null, seed: 0, model: '', text: '' };
      entry.text = [card.family, card.statement, message(card.statement), card.name, sayers(card), message(card.how)].join('\n').replaceAll('\u00a0', ' ').toLowerCase();
      entry.drawn = makeCard(card, {
        act: (guess) => enter(entry, { guess }),
        again: () => enter(entry, { seed: (entry.seed + 1) % (MOST_SEED + 1), guess: null }),
      });
      cards.set(card.name, entry);
    }
    state.only = state.only.filter((name) => cards.has(name));
    set({});
    for (const each of ran) {
      const [name, seed] = each.split('.');
      const entry = cards.get(name);
      if (entry) enter(entry, { seed: entry.card.drawn ? Number(seed ?? 0) : 0 });
    }
  }

  search.addEventListener('input', () => set({ search: search.value.slice(0, MOST_SEARCH) }));
  family.addEventListener('change', () => set({ family: family.value }));
  which.addEventListener('change', () => set({ state: which.value }));
  clear.addEventListener('click', () => { search.value = ''; set({ only: [], family: '', state: 'every', search: '' }); });
  runAll.addEventListener('click', () => { for (const entry of shown()) if (!entry.result) enter(entry); });
  stop.addEventListener('click', () => { for (const entry of queue.splice(0)) entry.drawn.open(); next(); });
  reset.addEventListener('click', () => { for (const entry of cards.values()) entry.guess = null; drawScore(); });

  const send = asker(view, 'ask', () => fail(TEXT.silent));
  view.onValue(() => {
    const answer = view.value;
    if (!answer || saver.take(answer)) return;
    if (running?.rev === answer.rev) { give(answer); return; }
    if (answer.rev !== asked || cards.size) return;
    draw(answer);
    view.root.dataset.state = 'ready';
  });
  const data = question();
  asked = data.rev;
  send(data);
}
