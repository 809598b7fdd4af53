// The guided tour: eight steps over the labs. Each sets up a sentence, hides words, opens a lab and says what to look at.
const { element, sentence, change, field, write, openTab, onChange, style, t, texts } = window.Cloze;

// hide: words of the sentence, in the spelling of the text.
const STEPS = texts([
  { title: 'A gap is filled from both sides',
    look: 'The word before the full stop is hidden. The model gives every piece of its vocabulary a probability, from the words on the left and on the right. Click another word to hide it, too.' },
  { title: 'Where it looks',
    look: 'Every small square is one attention head: rows look at columns. Find a head in which the hidden word looks at the name of the country.' },
  { title: 'What training hides',
    look: 'Pretraining hides 15 % of the tokens, and not all behind [MASK]. Compare masks that are drawn once with masks that are drawn at each visit, and count the contexts a word is seen in.' },
  { title: 'A forger and a detective',
    look: 'ELECTRA learns from every token: a small generator fills the gaps, and the discriminator says which words are not original. Try to fool it with a word of your own.' },
  { title: 'Another order of reading',
    look: 'XLNet predicts the words one after another, in an order that is drawn; the words stay where they are. Drag the order and see who may see whom.' },
  { title: 'What and where, kept apart',
    look: 'DeBERTa scores a pair of words three times: content to content, content to position, position to content. Switch one off and watch the prediction.' },
  { title: 'Where the parameters are',
    look: 'Move the sliders: a table of pieces costs V times E. ALBERT makes E small and uses one layer again and again: far fewer parameters, about the same time.' },
  { title: 'Watch one learn',
    look: 'Start the classroom recipe: in two minutes a small DeBERTa leaves the line of word frequencies. Then open it in all the labs you have just seen.' },
]);
const TABS = ['mask', 'attention', 'timeline', 'forge', 'permutation', 'terms', 'budget', 'train'];
// What a visitor reads is not translated: the models of the page read English.
const SCENES = [
  ['The capital of France is Paris.', 'Paris'], ['The capital of France is Paris.', 'Paris'], ['In winter the lake is covered with snow.', ''],
  ['The heart pumps blood through the body.', 'blood'], ['In winter the lake is covered with snow.', ''], ['The capital of France is Paris.', 'Paris'],
  ['The capital of France is Paris.', ''], ['The capital of France is Paris.', 'Paris'],
];

let panel = null;
let current = 0;
let wanted = null;

// Words can be hidden once Python has cut the new text into pieces.
function hideWanted() {
  if (!wanted || sentence.text !== wanted.text || !sentence.tokens.length) return;
  const { hide } = wanted;
  wanted = null;
  const found = sentence.tokens.filter((token) => hide && token.text.toLowerCase() === hide.toLowerCase());
  const whole = sentence.tokens.filter((token) => found.some(({ word }) => word === token.word));
  if (whole.length) window.Cloze.setHidden(whole, true);
}
onChange(() => queueMicrotask(hideWanted));

// The first step of a lesson's link is wanted before the page has mounted.
function whenReady(then) {
  if (window.Cloze.mounted && sentence.tokens.length && document.querySelector('#tabs [role="tab"]')) then();
  else requestAnimationFrame(() => whenReady(then));
}

// What a lab shows at a step where the model of the sentence bar has nothing to show.
const READERS = { terms: 'deberta-mini' };
function chooseReader(name) {
  const reader = READERS[name];
  const { choices } = window.gradio_config.components.find((part) => part.props?.elem_id === 'sentence-model').props;
  if (!reader || !choices.some(([, model]) => model === reader)) return;
  window.Cloze.keep(name, { ...window.Cloze.kept(name), reader });
  document.dispatchEvent(new CustomEvent('cloze:lab', { detail: name }));
}

// The lab comes into view, also when it is drawn, or grows, only later; until the visitor scrolls.
const TALL = 700;
const KEEP_FOR = 4_000;
const LOOK = 200;
let bringing = 0;
for (const kind of ['wheel', 'touchmove', 'keydown']) window.addEventListener(kind, () => { clearInterval(bringing); }, { passive: true });
function bring(name) {
  const wordy = innerHeight >= TALL && innerWidth >= TALL && !['budget', 'train'].includes(name);
  const target = document.getElementById(wordy ? 'cloze-chips' : 'frame');
  const started = performance.now();
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  let last = null;
  clearInterval(bringing);
  bringing = setInterval(() => {
    const { top } = target.getBoundingClientRect();
    const most = document.documentElement.scrollHeight - innerHeight - scrollY; // what is left to scroll
    const away = Math.min(top - 12, most);
    // A smooth scroll that a change of the page has stopped does not move any more.
    if (Math.abs(away) > 4 && top === last) window.scrollBy({ top: away, behavior: calm ? 'auto' : 'smooth' });
    last = top;
    if (performance.now() - started > KEEP_FOR) clearInterval(bringing);
  }, LOOK);
}

// Nor may the text box: what it does not keep is written again.
function put(text, tries = 25) {
  if (!tries || wanted?.text !== text) return;
  if (field('sentence-text')?.value !== text) write('sentence-text', text);
  setTimeout(() => put(text, tries - 1), 150);
}

function setScene(step) {
  const [text, hide] = SCENES[step];
  wanted = { text, hide };
  change({ marks: new Map() });
  if (sentence.text === text) hideWanted();
  else put(text);
  openTab(TABS[step]);
  chooseReader(TABS[step]);
  bring(TABS[step]);
}

function close() {
  clearInterval(bringing);
  wanted = null; // a visitor who writes at once keeps what they write
  panel.remove();
  panel = null;
  document.getElementById('tour')?.focus();
}

function go(step) {
  current = Math.min(STEPS.length - 1, Math.max(0, step));
  draw();
  whenReady(() => { if (panel) setScene(current); });
}

function draw() {
  const { title, look } = STEPS[current];
  const back = element('button', { type: 'button', class: 'quiet outlined', text: t`Back`, onclick: () => go(current - 1) });
  back.disabled = current === 0;
  const last = current === STEPS.length - 1;
  const next = element('button', { type: 'button', class: 'primary tour-next', text: last ? t`Finish` : t`Next`, onclick: () => (last ? close() : go(current + 1)) });
  panel.replaceChildren(
    element('p', { class: 'tour-count', text: t`Step ${current + 1} of ${STEPS.length}` }),
    element('h2', { text: title }), element('p', { class: 'tour-look', text: look }),
    element('div', { class: 'tour-tools' }, back, next,
      element('button', { type: 'button', class: 'quiet tour-end', text: t`End the tour`, onclick: close })));
  next.focus({ preventScroll: true });
}

/** Open the tour at a step, counted from 0. */
export function open(step) {
  style('page/tour');
  if (!panel) {
    panel = element('aside', { class: 'view card tour-panel', 'aria-label': t`Guided tour`, 'aria-live': 'polite' });
    panel.addEventListener('keydown', (event) => { if (event.key === 'Escape') close(); });
    (document.querySelector('.gradio-container') ?? document.body).append(panel);
  }
  go(step);
}
