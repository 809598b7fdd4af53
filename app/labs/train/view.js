// The Train tab: the list of runs on the left, the form or one run on the right, and the polling.
import { about, labHead } from '../../parts/layout.js';
import { get, own } from './api.js';
import { makeRace } from './race.js';
import { makeRun } from './run.js';
import { silentNote, waiting } from './head.js';
import { ACTIVE, STATES, figure, figureName, modelName, namesOf } from './words.js';

const { element, keep, kept, message, modelTitle, place, register, setPlace, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Train a model of your own',
  intro: 'A run is a process of its own: close the page, come back, open it on another computer; it goes on, and this page finds it again.',
  fresh: 'New run',
  none: 'No runs yet.',
  list: 'Training runs',
  compare: 'Compare',
  mine: 'your run',
});
const KINDS = ['pretraining', 'task', 'race'];
const AS_IT_IS = { __type__: 'update' };
const MOST_COMPARED = 8;
const PERIOD = 1500;
const PATIENT = 5000;

/** Take the run out of the address. The address follows the sentence, and does not while that has none: without a server, say. */
function forgetRun() {
  const values = new URLSearchParams(location.hash.slice(1));
  if (!values.has('run')) return;
  values.delete('run');
  history.replaceState(null, '', `${location.pathname}${location.search}${values.size ? `#${values}` : ''}`);
}

/** Inside a line of text; "F1" stays. */
const lower = (name) => name.replace(/^\p{Lu}(?=\p{Ll})/u, (letter) => letter.toLowerCase());

function makeCard(choose, toggle) {
  const parts = {
    name: element('span', { class: 'train-name' }),
    twin: element('span', { class: 'train-twin' }),
    state: element('span', { class: 'train-state' }),
    model: element('span', { class: 'train-note' }),
    bar: element('span', { class: 'train-fill' }),
    loss: element('span', { class: 'train-note' }),
    silent: element('span', { class: 'train-note train-silent-note', hidden: true }),
  };
  const button = element('button', { type: 'button', class: 'train-card', onclick: () => choose() },
    element('span', { class: 'train-line' }, element('span', { class: 'train-called' }, parts.name, parts.twin), parts.state),
    element('span', { class: 'train-bar', 'aria-hidden': 'true' }, parts.bar),
    element('span', { class: 'train-line train-last' }, parts.model, parts.loss), parts.silent);
  const box = element('input', { type: 'checkbox', onchange: () => toggle(box.checked) });
  const compare = element('label', { class: 'train-compare', title: TEXT.compare }, box,
    element('span', { text: TEXT.compare }));
  return {
    root: element('li', {}, button, compare),
    /** name: what tells it from the others; mine: whether to say that it is this browser's. */
    fill(run, name, mine, current, compared, comparable) {
      button.setAttribute('aria-current', current ? 'true' : 'false');
      button.dataset.run = run.id;
      button.dataset.state = run.state;
      parts.name.textContent = run.name;
      parts.twin.textContent = name.slice(run.name.length).trim();
      parts.name.title = run.id;
      parts.state.textContent = STATES[run.state] ?? run.state;
      parts.state.dataset.state = run.state;
      parts.bar.style.transform = `scaleX(${run.steps ? run.step / run.steps : 0})`;
      parts.model.textContent = run.place ? waiting(run).join(' · ') : [mine ? TEXT.mine : '', modelName(run.model)].filter(Boolean).join(' · ');
      parts.silent.textContent = silentNote(run) ?? '';
      parts.silent.hidden = !parts.silent.textContent;
      const { masked_token_loss: masked, loss } = run.last;
      const shown = masked ?? loss;
      if (Number.isFinite(run.main?.value)) parts.loss.textContent = `${lower(figureName(run.main.name))} ${figure(run.main.name, run.main.value)}`;
      else parts.loss.textContent = shown === undefined || shown === null ? '' : t`loss ${shown.toFixed(2)}`;
      box.checked = compared;
      box.setAttribute('aria-label', t`Compare ${name}`);
      compare.hidden = current || !Number.isFinite(run.last.loss) || !comparable;
    },
  };
}

// The forms are Gradio's: what they wish for and what they start goes through two values (lab.py).
const views = { wish: null, shown: null };
let onStarted = () => {};
register('train-wish', (view) => { views.wish = view; });
register('train-started', (view) => { view.onValue(() => { if (view.value?.id) onStarted(view.value.id); }); });
register('train-shown', (view) => { views.shown = view; view.root.classList.add('train'); });

/** Choices that Python gives while the page is open, in the page's language: titles of models, and all others. */
const ONE_WAY = ' – reads from left to right';
const called = (title) => {
  if (title.endsWith(ONE_WAY)) return t`${called(title.slice(0, -ONE_WAY.length))} – reads from left to right`;
  return modelTitle(title) === title ? message(title) : modelTitle(title);
};
window.Cloze.trainChoices = ({ choices }) => ({ ...AS_IT_IS, choices: choices.map(([title, name]) => [called(title), name]) });

export async function mount(view) {
  const before = kept('train') ?? {}; // as a stranger may have written it
  const overlaid = Array.isArray(before.with) ? before.with.filter((id) => typeof id === 'string') : [];
  const state = { runs: [], current: place.run ?? null, compared: new Set(overlaid.slice(0, MOST_COMPARED)), failed: 0, enabled: true };
  let kind = KINDS.includes(before.form) ? before.form : KINDS[0]; // of the form
  let decided = Boolean(state.current || before.form); // a link says what is shown; else the newest curve, or the form where there is none
  const remember = () => keep('train', {
    ...(kind === KINDS[0] ? {} : { form: kind }), ...(state.current && state.compared.size ? { with: [...state.compared] } : {}),
  });
  const cards = new Map();
  const list = element('ul', { class: 'train-runs', 'aria-label': TEXT.list });
  const none = element('p', { class: 'train-note', text: TEXT.none, hidden: true });
  const fresh = element('button', { type: 'button', class: 'primary', id: 'train-new', text: TEXT.fresh });
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const main = views.shown.root;
  const form = document.getElementById('train-forms');
  view.root.replaceChildren(element('div', { class: 'train' },
    labHead(TEXT.title), problem,
    element('nav', { class: 'train-side', 'aria-label': TEXT.list }, fresh, none, list), about(TEXT.intro)));

  const tell = (text) => {
    problem.hidden = !text;
    problem.textContent = text ?? '';
  };
  const acts = {
    onAgain: (id) => { show(null); wish({ copy: id }); },
    onTune: (model) => { show(null); wish({ tune: model }); },
    onGone: (id) => { if (id === state.current) show(null); },
    onChange: () => poll(),
  };
  const run = makeRun(view, acts);
  const race = makeRace(view, acts);
  onStarted = (id) => { show(id); poll(); };
  let wishes = 0;
  /** Ask for a form: as it is, with the settings of a run, or for a model to go on from. */
  function wish(more = {}) {
    wishes += 1;
    views.wish.value = { owner: own(), wishes, ...more };
  }
  window.Cloze.trainKind = (chosen) => {
    kind = chosen;
    remember();
    form.dataset.kind = chosen; // a form that was drawn stays, with all that is in it
    return KINDS.map((each) => (each === chosen ? { ...AS_IT_IS, visible: true } : AS_IT_IS));
  };
  const briefOf = (id) => state.runs.find((each) => each.id === id);
  const kindOf = (id) => briefOf(id)?.kind;
  const panelOf = (id) => (kindOf(id) === 'race' ? race : run);

  let gone = null; // that the run which was shown is not there any more, until another is shown

  function show(id) {
    if (gone) { gone = null; tell(null); }
    if (id !== state.current && kindOf(id) !== kindOf(state.current)) state.compared.clear();
    state.current = id;
    setPlace({ run: id });
    if (!id) forgetRun();
    state.compared.delete(id);
    const panel = panelOf(id);
    main.replaceChildren(...(id ? [panel.root] : []));
    form.classList.toggle('shown', !id);
    panel.show(id, [...state.compared], briefOf(id));
    remember();
    drawList();
  }

  /** What a click on a card does: the run is asked for at once, not when the next round comes. */
  function choose(id) {
    if (id === state.current) { poll(); return; }
    show(id);
    panelOf(id).poll(state.enabled).then(() => drawList(), () => {}).finally(() => poll()); // the round tells what is wrong
  }

  function drawList() {
    const known = new Set(state.runs.map(({ id }) => id));
    for (const [id, card] of cards) if (!known.has(id)) { card.root.remove(); cards.delete(id); }
    const here = kindOf(state.current);
    const names = namesOf(state.runs);
    const others = state.runs.some(({ mine }) => !mine); // where all are one's own, nothing is to be told apart
    state.runs.forEach((each, n) => {
      let card = cards.get(each.id);
      if (!card) {
        card = makeCard(() => choose(each.id), (on) => {
          if (on) state.compared.add(each.id); else state.compared.delete(each.id);
          run.show(state.current, [...state.compared], briefOf(state.current));
          remember();
          poll();
        });
        cards.set(each.id, card);
      }
      card.fill(each, names.get(each.id), others && each.mine, each.id === state.current, state.compared.has(each.id), here !== 'race' && each.kind === here);
      if (list.children[n] !== card.root) list.insertBefore(card.root, list.children[n] ?? null);
    });
    list.classList.toggle('comparing', Boolean(state.current));
    none.hidden = state.runs.length > 0;
    fresh.setAttribute('aria-current', state.current ? 'false' : 'true');
    view.root.dataset.state = 'ready';
  }

  // --- polling: one round at a time, only while the tab is seen -----------------------------

  let timer = 0;
  let flying = false;
  const seen = () => view.root.offsetParent !== null && !document.hidden;

  async function round() {
    const wanted = state.current; // what is shown when the list comes may be newer than the list
    const { runs, enabled } = await get('runs');
    [state.runs, state.enabled] = [runs, enabled];
    fresh.disabled = !enabled && !state.current;
    const known = new Map(runs.map((run) => [run.id, run]));
    if (!decided) { decided = true; show(runs.find((run) => Number.isFinite(run.last.loss))?.id ?? null); }
    const { size } = state.compared;
    for (const id of state.compared) if (known.get(id)?.kind !== known.get(state.current)?.kind) state.compared.delete(id);
    if (wanted && wanted === state.current && !known.has(wanted)) {
      show(null);
      gone = t`There is no run “${wanted}” here any more.`;
      tell(gone);
      return;
    }
    if (state.current && known.has(state.current)) {
      const panel = panelOf(state.current);
      if (!panel.root.isConnected) show(state.current); // a link to a race, whose kind is known only now
      else if (state.compared.size < size) { panel.show(state.current, [...state.compared], briefOf(state.current)); remember(); }
      await panel.poll(enabled);
    }
    drawList();
    tell(gone);
  }

  async function poll() {
    clearTimeout(timer);
    if (flying) { timer = setTimeout(poll, 100); return; }
    if (!view.root.isConnected) return;
    if (!seen()) return; // the observers below wake it up
    flying = true;
    let wait = PERIOD;
    try {
      await round();
      state.failed = 0;
      if (!state.runs.some((run) => ACTIVE.has(run.state))) wait = PATIENT;
    } catch (error) {
      state.failed += 1;
      if (!decided) { decided = true; show(null); }
      wait = Math.min(10_000, PERIOD * state.failed);
      tell(error.message);
    }
    flying = false;
    timer = setTimeout(poll, wait);
  }

  fresh.addEventListener('click', () => { decided = true; show(null); wish(); form.querySelector('input')?.focus(); });
  document.addEventListener('visibilitychange', () => { if (seen()) poll(); });
  let was = true;
  new ResizeObserver(() => {
    const now = seen();
    if (now && !was) poll();
    was = now;
  }).observe(view.root);
  wish(kind === KINDS[0] ? {} : { kind }); // of a link; later a late answer would undo a choice
  if (decided) show(state.current);
  poll();
}
