// The guided tour: nine steps over the labs. Each sets up a sentence, hides words, opens a lab, marks what it speaks of, and
// notices when its task is done. It stands between the sentence and the lab and covers nothing.
const { element, sentence, change, field, language, write, openTab, onChange, style, t, texts, tokensOf } = window.Cloze;

const STEPS = texts([
  { title: 'A gap is filled from both sides', task: 'Hide a second word.',
    look: 'The model gives every piece of its vocabulary a probability, from the words on the left and on the right of the gap.' },
  { title: 'Where it looks', task: 'Choose another head.',
    look: 'Every small square is one attention head: rows look at columns. Find a head in which the hidden word looks at the name of the country.' },
  { title: 'What training hides', task: 'Choose another masking, or more epochs.',
    look: 'Pretraining hides 15 % of the tokens, and not all behind [MASK]. Masks that are drawn once come again; masks that are drawn at each visit show a word in ever new contexts.' },
  { title: 'A text out of [MASK]s', task: 'Let another word stay, or play the steps.',
    look: 'All words are hidden but one. In each step the model answers every gap, and the answers that it is surest of stay; the next step reads them, too.' },
  { title: 'A forger and a detective', task: 'Try to fool it with a word of your own.',
    look: 'ELECTRA learns from every token: a small generator fills the gaps, and the discriminator says which words are not original.' },
  { title: 'Another order of reading', task: 'Change the order.',
    look: 'XLNet predicts the words one after another, in an order that is drawn; the words stay where they are. See who may see whom.' },
  { title: 'What and where, kept apart', task: 'Switch one term off.',
    look: 'DeBERTa scores a pair of words three times: content to content, content to position, position to content.' },
  { title: 'Where the parameters are', task: 'Change a size.',
    look: 'A table of pieces costs V times E. ALBERT makes E small and uses one layer again and again: far fewer parameters, about the same time.' },
  { title: 'Watch one learn', task: 'Start a run, or open one.',
    look: 'In two minutes the classroom recipe makes a small DeBERTa leave the line of word frequencies. Then open it in all the labs you have just seen.' },
]);
// What a step speaks of is measured on these (app/serving/demonstrations.py).
const BORN = 'She was born in Paris, the capital of France.';
const CAPITAL = ['The capital of France is Paris.', 'Paris'];
const WINTER = ['In winter the lake is covered with snow.', ''];
// What a visitor reads is not translated: most models of the page read English.
const SCENES = [
  ['mask', BORN, 'Paris'], ['attention', ...CAPITAL], ['timeline', ...WINTER], ['unmasking', CAPITAL[0], ''],
  ['forge', ...CAPITAL], ['permutation', ...WINTER], ['terms', ...CAPITAL],
  ['budget', CAPITAL[0], ''], ['train', ...CAPITAL],
];
// Number of each step in links (?lesson=): a step that came later has the next number, so that old links stay.
const LESSONS = [1, 2, 3, 9, 4, 5, 6, 7, 8];
const ENGLISH = 'bert-mini';
const CHINESE = ['mask', 'attention', 'timeline']; // what Chinese pages show in Chinese
const part = (id) => window.gradio_config.components.find(({ props }) => props?.elem_id === id)?.props;

/** What a step shows: a lab, a text, a word to hide in it, and the model that reads it. */
function sceneOf(step) {
  const [lab, text, hide] = SCENES[step];
  const own = CHINESE.includes(lab) && part('cloze-examples').value.openings[language];
  return own ? { lab, text: own[0], hide: '首都', model: own[1] } : { lab, text, hide, model: ENGLISH };
}

let panel = null;
let current = 0;
let wanted = null;
let done = new Set(); // steps whose task was done
let before = null; // what the lab kept before the visitor's first act in it

// Words can be hidden once Python has cut the new text into pieces.
function hideWanted() {
  if (!wanted || sentence.text !== wanted.text || !sentence.tokens.length) return;
  const { hide } = wanted;
  wanted = null;
  if (hide) window.Cloze.setHidden(tokensOf([hide.toLowerCase()]), true);
}

// --- the task -----------------------------------------------------------------------------------

const keptOf = (lab) => JSON.stringify(Object.entries(window.Cloze.keptBy(lab)));

// Labs keep settings of their own accord, too: only what differs after an act of the visitor counts.
function act({ isTrusted, target }) {
  const { lab } = sceneOf(current);
  if (isTrusted && before === null && target.closest?.(`#tab-${lab}`)) before = keptOf(lab);
}

function isDone() {
  const { lab } = sceneOf(current);
  if (lab === 'mask') return !wanted && sentence.marks.size > 1 && sentence.marks.size < sentence.tokens.length;
  if (lab === 'train' && window.Cloze.place.run) return true;
  return before !== null && before !== keptOf(lab);
}

function check() {
  if (!panel || done.has(current) || !isDone()) return;
  done.add(current);
  drawTask();
}
onChange(() => queueMicrotask(() => { hideWanted(); check(); }));
document.addEventListener('cloze:kept', check);
const ACTS = ['pointerdown', 'keydown', 'input'];

// --- the scene ----------------------------------------------------------------------------------

// The first step of a lesson's link is wanted before the page has mounted, and while the page's own first sentence (of a
// Chinese page, or of a link) is on its way, which would come after that of the step. A text that cannot be read is there, too.
const WAITS = 5_000;
function whenReady(then, until = performance.now() + WAITS) {
  const there = window.Cloze.mounted && (sentence.tokens.length || sentence.error) && document.querySelector('#tabs [role="tab"]');
  if (there && (!window.Cloze.arriving() || performance.now() > until)) then();
  else requestAnimationFrame(() => whenReady(then, until));
}

const installed = (model) => part('sentence-model').choices.some(([, name]) => name === model);

// A step speaks of the model that its lab shows of its own accord, not of one that was chosen there before.
function forgetReader(lab) {
  const kept = window.Cloze.kept(lab);
  if (lab !== 'terms' || !kept) return;
  window.Cloze.keep(lab, { ...kept, reader: '' });
  document.dispatchEvent(new CustomEvent('cloze:lab', { detail: lab }));
}

// What is marked: the chips in the first step, else the picture of the lab.
const marked = (lab) => (lab === 'mask' ? document.querySelector('.chips')
  : [...document.querySelectorAll(`#tab-${lab} [data-picture]`)].find((each) => each.offsetHeight) ?? document.querySelector(`#tab-${lab} .view`));

// The panel and what it marks come into view, also when the lab is drawn, or grows, only later; until the visitor scrolls.
const KEEP_FOR = 4_000;
const LOOK = 200;
const ENOUGH = 0.6; // of what is marked
let bringing = 0;
for (const kind of ['wheel', 'touchmove', 'keydown']) window.addEventListener(kind, () => { clearInterval(bringing); }, { passive: true });
function bring(lab) {
  const started = performance.now();
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  let last = null;
  clearInterval(bringing);
  bringing = setInterval(() => {
    if (performance.now() - started > KEEP_FOR) clearInterval(bringing);
    if (!document.getElementById(`tab-${lab}`)?.offsetHeight) return; // not open yet, or no more
    const target = marked(lab);
    for (const each of document.querySelectorAll('.tour-mark')) if (each !== target) each.classList.remove('tour-mark');
    target?.classList.add('tour-mark');
    if (!target || !panel) return;
    const [one, two] = [panel, target].map((each) => each.getBoundingClientRect()).sort((a, b) => a.top - b.top);
    const most = document.documentElement.scrollHeight - innerHeight - scrollY; // what is left to scroll
    const seen = two.top + ENOUGH * two.height <= innerHeight && one.top >= 0;
    const away = seen ? 0 : Math.min(one.top - 12, most);
    // A smooth scroll that a change of the page has stopped does not move any more.
    if (Math.abs(away) > 4 && one.top === last) window.scrollBy({ top: away, behavior: calm ? 'auto' : 'smooth' });
    last = one.top;
  }, LOOK);
}

// The text box may not listen yet: what it does not keep is written again.
function put(text, tries = 25) {
  if (!tries || wanted?.text !== text) return;
  if (field('sentence-text')?.value !== text) write('sentence-text', text);
  setTimeout(() => put(text, tries - 1), 150);
}

function setScene(step) {
  const scene = sceneOf(step);
  wanted = scene;
  before = null;
  change({ marks: new Map() });
  if (scene.model !== sentence.model && installed(scene.model)) window.Cloze.chooseModel(scene.model);
  if (sentence.text === scene.text) hideWanted();
  else put(scene.text);
  openTab(scene.lab);
  forgetReader(scene.lab);
  bring(scene.lab);
}

// A page that was opened at a lesson, or changes its language, opens at the step where the visitor is, and without the tour that was ended.
function tell(lesson) {
  window.Cloze.lesson = lesson;
  const address = new URL(location.href);
  if (!address.searchParams.has('lesson')) return;
  if (lesson) address.searchParams.set('lesson', lesson);
  else address.searchParams.delete('lesson');
  history.replaceState(history.state, '', address);
}

function close() {
  tell(null);
  clearInterval(bringing);
  wanted = null; // a visitor who writes at once keeps what they write
  for (const each of document.querySelectorAll('.tour-mark')) each.classList.remove('tour-mark');
  for (const kind of ACTS) document.removeEventListener(kind, act, { capture: true });
  panel.remove();
  panel = null;
  document.getElementById('tour')?.focus({ preventScroll: true });
}

function go(step) {
  const backward = step < current;
  current = Math.min(STEPS.length - 1, Math.max(0, step));
  tell(LESSONS[current]);
  draw(backward);
  whenReady(() => { if (panel) setScene(current); });
}

function drawTask() {
  const { task } = STEPS[current];
  const line = panel.querySelector('.tour-task');
  line.dataset.done = done.has(current);
  line.textContent = done.has(current) ? t`Done: ${task}` : t`Your turn: ${task}`;
}

function draw(backward) {
  const { title, look } = STEPS[current];
  const back = element('button', { type: 'button', class: 'quiet outlined', text: t`Back`, onclick: () => go(current - 1) });
  back.disabled = current === 0;
  const last = current === STEPS.length - 1;
  const next = element('button', { type: 'button', class: 'primary tour-next', text: last ? t`Finish` : t`Next`, onclick: () => (last ? close() : go(current + 1)) });
  panel.replaceChildren(
    element('div', { class: 'tour-text' },
      element('p', { class: 'tour-count', text: t`Step ${current + 1} of ${STEPS.length}` }),
      element('h2', { text: title }), element('p', { class: 'tour-look', text: look }),
      element('p', { class: 'tour-task' })),
    element('div', { class: 'tour-tools' }, back, next,
      element('button', { type: 'button', class: 'quiet tour-end', text: t`End the tour`, onclick: close })));
  drawTask();
  (backward && current ? back : next).focus({ preventScroll: true }); // whoever goes back goes on going back
}

/** Open the tour at its beginning, or at a lesson. */
export function open(lesson = 1) {
  style('page/tour');
  if (!panel) {
    done = new Set();
    panel = element('aside', { class: 'view tour-panel', 'aria-label': t`Guided tour`, 'aria-live': 'polite' });
    panel.addEventListener('keydown', (event) => { if (event.key === 'Escape') close(); });
    for (const kind of ACTS) document.addEventListener(kind, act, { capture: true });
    const frame = document.getElementById('frame');
    if (frame) frame.append(panel);
    else whenReady(() => document.getElementById('frame').append(panel));
  }
  go(LESSONS.indexOf(lesson) < 0 ? LESSONS.length - 1 : LESSONS.indexOf(lesson));
}
