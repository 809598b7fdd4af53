// The Why tab: what is asked, the bars of four methods, whether they agree, and a check of the methods themselves.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeFigure } from '../../parts/figure.js';
import { makeCode, wholeOr } from '../../parts/lab-files.js';
import { chooser, slider, working } from './widgets.js';
import {
  METHODS, TEXT, agreementTable, checkTable, checkVerdict, headline, missing, nameOf, strongest, sumCheck,
} from './parts.js';

const { element, field, format, sentence, change, onSentence, question, asker, write, t, message } = window.Cloze;
const TRIES = [
  { name: t`Why Paris, not London?`, text: 'The capital of France is Paris.', hide: 'paris', values: { word: 'paris', against: 'london' } },
  { name: t`One or many?`, text: 'The children are playing in the garden.', hide: 'are', values: { word: 'are', against: 'is' } },
  { name: t`Too few steps`, text: 'Madrid is the capital of Spain.', hide: 'spain', values: { word: 'spain', steps: 10, scale: 'probability' } },
  { name: t`Three words at a time`, text: 'The house was built two hundred years ago.', hide: 'years', values: { word: 'years', window: 3 } },
  { name: t`Two sentences`, text: 'Mount Everest is the highest mountain in the world.', needs: 'class', values: { kind: 'class', second: 'Its top lies almost nine kilometres above the sea.' } },
  { name: t`A forged word`, text: 'The capital of France is honey.', needs: 'replaced', values: { kind: 'replaced' } },
];
const START = { kind: null, position: null, word: null, against: null, second: '', scale: 'log_probability', steps: 30, baseline: null, window: 1 };
// What a model that fills gaps without ever reading [MASK] is measured from; the visitor may choose another baseline.
const usualBaseline = () => (['order', 'causal'].includes(sentence.card?.fills) ? 'zero' : 'mask');
const PAIRED = ['class', 'score', 'start', 'end'];
const MOST_SECOND = 400; // characters of the second text in an address

/** What a link asks for; anything may stand there. */
function fromAddress() {
  const found = window.Cloze.kept('why') ?? {};
  const among = (name, table) => (Object.hasOwn(table, found[name] ?? '') ? found[name] : START[name]);
  const word = (value) => (typeof value === 'string' && value ? value.slice(0, 64) : wholeOr(value, 0, 2 ** 31, null));
  return {
    kind: among('kind', TEXT.kinds), position: wholeOr(found.position, 0, 4096, null), word: word(found.word), against: word(found.against),
    second: typeof found.second === 'string' ? found.second.slice(0, MOST_SECOND) : '', scale: among('scale', TEXT.scales),
    steps: wholeOr(found.steps, 10, 300, START.steps), baseline: among('baseline', TEXT.baselines),
    window: wholeOr(found.window, 1, 8, START.window),
  };
}

export async function mount(view) {
  const state = { ...fromAddress(), seed: 0, pending: null };
  let asked = { rev: 0, key: '' };
  let checking = 0;
  let scene = null;
  let sceneText = '';
  let answer = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const none = element('div', { hidden: true });
  const tries = element('div', { class: 'wy-row', role: 'group', 'aria-label': t`What to try` });
  const kinds = element('div', { class: 'wy-row', role: 'group', 'aria-label': t`What to explain` });
  const second = element('textarea', { id: 'wy-second', class: 'wy-text', rows: '1', spellcheck: 'false', autocomplete: 'off' });
  const secondLabel = element('label', { class: 'wy-small', for: 'wy-second' });
  const secondBox = element('div', { class: 'wy-second' }, secondLabel, second);
  const place = element('select', { id: 'wy-place', class: 'wy-select', onchange: () => set({ position: Number(place.value), word: null, against: null }) });
  const placeBox = element('label', { class: 'wy-field', for: 'wy-place' }, t`At`, place);
  const answers = element('div', { class: 'wy-row wy-answers', role: 'group', 'aria-label': t`The answer to explain` });
  const rivals = element('div', { class: 'wy-row wy-answers', role: 'group', 'aria-label': t`Set against` });
  const word = element('input', { type: 'text', class: 'wy-input', id: 'wy-word', maxlength: '64', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', 'aria-label': t`Another word`, placeholder: t`another word` });
  const own = element('form', { class: 'wy-row' }, word,
    element('button', { type: 'submit', class: 'quiet outlined', id: 'wy-why', text: t`Why this one?` }),
    element('button', { type: 'button', class: 'quiet outlined', id: 'wy-against', text: t`Why not this one?`, onclick: () => typed('against') }));
  const scale = chooser('wy-scale', t`Measured in`, TEXT.scales, (value) => set({ scale: value }));
  const notes = element('div', { class: 'wy-notes', role: 'status' });
  const choice = element('div', { class: 'wy-choice' }, placeBox, answers, rivals, own, scale.root, notes);
  const aboutMethods = element('dl', { class: 'wy-small' }, ...METHODS.flatMap((name) => [element('dt', { text: TEXT.methods[name] }), element('dd', { text: TEXT.about[name] })]));
  const steps = slider('wy-steps', t`Steps`, [10, 300, 10], (value) => set({ steps: value }));
  const baseline = chooser('wy-baseline', t`Baseline`, TEXT.baselines, (value) => set({ baseline: value }));
  const wide = slider('wy-window', t`Words at a time`, [1, 8, 1], (value) => set({ window: value }));
  const progress = working('wy-progress', () => stop());
  const again = element('button', { type: 'button', class: 'primary', id: 'wy-again', text: t`Compute`, hidden: true, onclick: () => ask() });
  const said = element('p', { class: 'summary', role: 'status' });
  const strongestLine = element('p', { class: 'wy-strongest' });
  const bars = makeFigure({ name: 'cloze-why' });
  const picture = element('div', { 'data-picture': '' }, bars.root);
  const sum = element('div');
  const matrix = element('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': t`Do the methods agree?` });
  const checkButton = element('button', { type: 'button', class: 'quiet outlined', id: 'wy-check', text: t`Draw the top layers anew`, onclick: () => { state.seed += 1; check(); } });
  const checkProgress = working('wy-check-progress', () => stop());
  const checkSaid = element('p', { class: 'wy-strongest', role: 'status' });
  const checked = element('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': t`The check`, hidden: true });
  const code = makeCode();

  const result = element('section', { class: 'card', id: 'wy-result' }, said, progress.root, again, picture, strongestLine);
  const how = fold(t`How it is computed`, aboutMethods, element('div', { class: 'wy-row' }, steps.root, baseline.root, wide.root), sum);
  const agree = fold(t`Do the methods agree?`, matrix);
  const sanity = fold(t`Would a model that has forgotten say the same?`,
    element('p', { class: 'wy-small', text: t`The head and more and more of the last layers get fresh random weights (Adebayo et al. 2018). A method whose bars hardly change does not show what those layers had learnt.` }),
    element('div', { class: 'wy-row' }, checkButton), checkProgress.root, checkSaid, checked);
  const first = fold(t`What to explain`, kinds, secondBox, choice);
  view.root.replaceChildren(element('div', { class: 'wy' }, labHead(TEXT.title, tries),
    problem, none, result, first, how, agree, sanity, about(TEXT.intro), code.root));

  const fail = (text) => { problem.hidden = !text; problem.textContent = text ?? ''; };
  const silent = () => { fail(TEXT.silent); view.root.dataset.state = 'error'; };
  const send = asker(view, 'ask', silent);
  const sendCheck = asker(view, 'check', silent);
  const chosen = () => Object.fromEntries(Object.keys(START).map((name) => [name, state[name]]));
  const values = () => ({ ...chosen(), baseline: state.baseline ?? usualBaseline() });

  function keep() {
    window.Cloze.keep('why', Object.fromEntries(Object.entries(chosen()).filter(([name, value]) => value !== START[name] && String(value).length <= MOST_SECOND)));
  }

  function ask() {
    const data = question(values());
    asked = { ...asked, rev: data.rev };
    endCheck();
    again.hidden = true;
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  function check() {
    const data = question({ ...values(), seed: state.seed });
    checking = data.rev;
    checkButton.disabled = true;
    sendCheck(data);
  }

  function stop() {
    const wasChecking = checking;
    asked.rev = 0;
    endCheck();
    view.send('stop', question());
    progress.hide();
    if (wasChecking) return;
    again.hidden = false;
    view.root.dataset.state = 'stopped';
  }

  function endCheck() {
    checking = 0;
    checkButton.disabled = false;
    checkProgress.hide();
  }

  // --- what the visitor does ------------------------------------------------------------------

  function set(patch) {
    Object.assign(state, patch);
    keep();
    ask();
  }

  function typed(name) {
    const text = word.value.trim();
    if (!text) return;
    word.value = '';
    set({ [name]: text });
  }
  own.addEventListener('submit', (event) => { event.preventDefault(); typed('word'); });
  let pause = 0;
  second.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(() => set({ second: second.value, word: null, against: null, position: null }), 350);
  });

  function attempt(entry) {
    Object.assign(state, START, entry.values);
    second.value = state.second;
    state.pending = entry;
    asked.key = '';
    if (sentence.text !== entry.text) write('sentence-text', entry.text);
    change({ marks: new Map() });
    hidePending();
  }

  /** Whether a try still waits for its text. */
  function hidePending() {
    const entry = state.pending;
    if (!entry) return false;
    if (sentence.text !== entry.text && field('sentence-text')?.value === entry.text) return !sentence.error;
    state.pending = null;
    if (sentence.text !== entry.text) { // it was typed over, and what it asks belongs to its own text
      Object.assign(state, { kind: null, position: null, word: null, against: null });
      return false;
    }
    const found = entry.hide ? sentence.tokens.filter((token) => token.text.toLowerCase() === entry.hide) : [];
    if (found.length) window.Cloze.setHidden(found, true);
    else { asked.key = ''; change({}); }
    keep();
    return found.length > 0;
  }

  // --- drawing ----------------------------------------------------------------------------------

  function drawTries(able) {
    tries.replaceChildren(element('span', { class: 'wy-small', text: t`Try` }), ...TRIES.filter((entry) => !entry.needs || able.includes(entry.needs)).map((entry) => element('button', {
      type: 'button', class: 'quiet outlined', text: entry.name, onclick: () => attempt(entry),
    })));
  }

  function drawKinds(able, chosen, pairHead) {
    kinds.hidden = able.length < 2;
    kinds.replaceChildren(...able.map((kind) => element('button', {
      type: 'button', class: 'quiet outlined', 'data-kind': kind, 'aria-pressed': String(kind === chosen), text: (kind === 'class' && TEXT.pairs[pairHead]) || TEXT.kinds[kind],
      onclick: () => set({ kind, position: null, word: null, against: null }),
    })));
    secondBox.hidden = !PAIRED.includes(chosen);
    secondLabel.textContent = chosen === 'start' || chosen === 'end' ? t`Question about the sentence above` : t`Second text (the first one is the sentence above)`;
    if (document.activeElement !== second) second.value = state.second;
  }

  function answerButtons(chosen, pick) {
    return scene.choices.map((each) => element('button', {
      type: 'button', class: `quiet outlined wy-answer${each.original ? ' original' : ''}`, 'data-index': each.index, 'aria-pressed': String(each.index === chosen),
      title: format.exact(each.probability), onclick: () => pick(each.index),
    }, element('bdi', { text: nameOf(scene, each) }), element('small', { text: format.percent(each.probability) })));
  }

  function drawChoice() {
    placeBox.hidden = scene.places.length < 2;
    place.replaceChildren(...scene.places.map((position) => element('option', { value: position, selected: position === scene.position, text: `${position}: ${scene.tokens[position].text}` })));
    const some = scene.choices.length > 0;
    const rival = scene.choices.filter((each) => each.index !== scene.answer);
    answers.hidden = !some;
    rivals.hidden = !some || scene.named === 'replaced_token' || !rival.length;
    own.hidden = scene.kind !== 'piece';
    answers.replaceChildren(element('span', { class: 'wy-small wy-lead', text: t`Why` }), ...answerButtons(scene.answer, (index) => set({ word: index, against: state.against === index ? null : state.against })));
    const others = answerButtons(scene.against, (index) => set({ against: index })).filter((button) => Number(button.dataset.index) !== scene.answer);
    rivals.replaceChildren(element('span', { class: 'wy-small wy-lead', text: t`rather than` }), element('button', {
      type: 'button', class: 'quiet outlined wy-answer', 'data-index': '', 'aria-pressed': String(scene.against === null), text: t`nothing in particular`, onclick: () => set({ against: null }),
    }), ...others);
    scale.root.hidden = scene.kind === 'score' || scene.against !== null;
    scale.select.value = scene.scale;
    notes.replaceChildren(...scene.notes.map((text) => element('p', { text: message(text) })));
  }

  function draw() {
    steps.show(state.steps);
    wide.show(state.window);
    baseline.select.value = state.baseline ?? usualBaseline();
    const done = Boolean(answer);
    for (const part of [picture, strongestLine, sum, said, agree, sanity, code.root]) part.hidden = !done;
    if (!done) return;
    said.textContent = headline(scene, answer);
    strongestLine.textContent = strongest(scene, answer.methods.integrated);
    sum.replaceChildren(sumCheck(answer));
    matrix.replaceChildren(agreementTable(answer));
  }

  function show(found) {
    fail(message(found.error));
    none.hidden = found.state !== 'missing';
    if (found.state === 'missing') none.replaceChildren(missing());
    first.hidden = found.state === 'missing';
    const { kinds: able = [], class_head: pairHead } = found.scene ?? found;
    if (!found.scene) {
      drawTries(able);
      drawKinds(able, state.kind ?? able[0], pairHead);
      sceneText = '';
      choice.hidden = result.hidden = true;
      answer = null;
      for (const part of [agree, sanity, code.root]) part.hidden = true;
      return;
    }
    const text = JSON.stringify(found.scene);
    if (text !== sceneText) {
      [scene, sceneText] = [found.scene, text];
      drawTries(able);
      drawKinds(able, scene.kind, pairHead);
      drawChoice();
      checkSaid.textContent = '';
      checked.hidden = true;
    }
    choice.hidden = result.hidden = false;
    answer = found.answer ?? null;
    if (found.code) code.show(found.code);
    if (found.figure) bars.show(found.figure);
    draw();
  }

  /** There is no text to explain; an answer on its way is of one that is gone. */
  function lose(key) {
    progress.hide();
    endCheck();
    again.hidden = true;
    show({ state: 'error', error: sentence.error });
    view.root.dataset.state = 'error';
    asked = { rev: 0, key };
  }

  function onCheck(found) {
    if (found.rev !== checking) return;
    if (found.state === 'working') { checkProgress.show(found); check(); return; }
    endCheck();
    if (found.error) { fail(message(found.error)); return; }
    if (found.state !== 'done') return;
    checkSaid.textContent = checkVerdict(found.answer);
    checked.replaceChildren(checkTable(found.answer));
    checked.hidden = false;
  }

  onSentence(view, () => {
    if (hidePending()) return;
    const key = JSON.stringify([sentence.text, sentence.model, [...sentence.marks.values()]]);
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    if (sentence.error) { lose(key); return; }
    // Another sentence has other places and words; a link or a try brings its own along.
    if (answer && asked.key) Object.assign(state, { position: null, word: null, against: null, kind: scene.model === sentence.model ? state.kind : null });
    asked.key = key;
    keep();
    ask();
  });

  view.onValue(() => {
    const found = view.value;
    if (!found) return;
    if (found.what === 'check') { onCheck(found); return; }
    if (found.what !== 'ask' || found.rev !== asked.rev) return;
    if (found.state === 'working') { show(found); progress.show(found); ask(); return; }
    progress.hide();
    view.root.dataset.rev = found.rev;
    if (found.state === 'stopped') { again.hidden = false; view.root.dataset.state = 'stopped'; return; }
    show(found);
    view.root.dataset.state = found.error ? 'error' : found.state === 'missing' ? 'missing' : 'ready';
  });
}
