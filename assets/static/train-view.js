// The Train tab: the list of runs on the left, the form or one run on the right, and the polling.
import { get } from './train-api.js';
import { makeNew } from './train-new.js';
import { makeRace } from './train-race.js';
import { makeRun } from './train-run.js';
import { ACTIVE, STATES, figure, metricName, modelName } from './train-words.js';

const { element, keep, kept, place, setPlace, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Train a model of your own',
  intro: 'A run is a process of its own: close the page, come back, open it on another computer; it goes on, and this page finds it again.',
  fresh: 'New run',
  none: 'No runs yet.',
  list: 'Training runs',
  compare: 'Compare',
  waiting: (number) => t`place ${number} in the queue`,
});
const MOST_COMPARED = 8;
const PERIOD = 1500;
const PATIENT = 5000;

function loadStyle() {
  if (document.querySelector('link[href="/cloze/train.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/train.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

function makeCard(choose, toggle) {
  const parts = {
    name: element('span', { class: 'train-name' }),
    state: element('span', { class: 'train-state' }),
    model: element('span', { class: 'train-note' }),
    bar: element('span', { class: 'train-fill' }),
    loss: element('span', { class: 'train-note' }),
  };
  const button = element('button', { type: 'button', class: 'train-card', onclick: () => choose() },
    element('span', { class: 'train-line' }, parts.name, parts.state),
    element('span', { class: 'train-bar', 'aria-hidden': 'true' }, parts.bar),
    element('span', { class: 'train-line' }, parts.model, parts.loss));
  const box = element('input', { type: 'checkbox', onchange: () => toggle(box.checked) });
  const compare = element('label', { class: 'train-compare', title: TEXT.compare }, box,
    element('span', { text: TEXT.compare }));
  return {
    root: element('li', {}, button, compare),
    fill(run, current, compared, comparable) {
      button.setAttribute('aria-current', current ? 'true' : 'false');
      button.dataset.run = run.id;
      button.dataset.state = run.state;
      parts.name.textContent = run.name;
      parts.name.title = run.id;
      parts.state.textContent = STATES[run.state] ?? run.state;
      parts.state.dataset.state = run.state;
      parts.bar.style.transform = `scaleX(${run.steps ? run.step / run.steps : 0})`;
      parts.model.textContent = run.place ? TEXT.waiting(run.place) : modelName(run.model);
      const { masked_token_loss: masked, loss } = run.last;
      const shown = masked ?? loss;
      if (Number.isFinite(run.main?.value)) parts.loss.textContent = `${metricName(run.main.name).toLowerCase()} ${figure(run.main.name, run.main.value)}`;
      else parts.loss.textContent = shown === undefined || shown === null ? '' : t`loss ${shown.toFixed(2)}`;
      box.checked = compared;
      box.setAttribute('aria-label', t`Compare ${run.name}`);
      compare.hidden = current || !Number.isFinite(run.last.loss) || !comparable;
    },
  };
}

export async function mount(view) {
  await loadStyle();
  const before = kept('train') ?? {}; // as a stranger may have written it
  const overlaid = Array.isArray(before.with) ? before.with.filter((id) => typeof id === 'string') : [];
  const state = { runs: [], current: place.run ?? null, compared: new Set(overlaid.slice(0, MOST_COMPARED)), failed: 0 };
  let kind = null; // of the form, where it is not the first one
  const remember = () => keep('train', {
    ...(kind ? { form: kind } : {}), ...(state.current && state.compared.size ? { with: [...state.compared] } : {}),
  });
  const cards = new Map();
  const list = element('ul', { class: 'train-runs', 'aria-label': TEXT.list });
  const none = element('p', { class: 'train-note', text: TEXT.none, hidden: true });
  const fresh = element('button', { type: 'button', class: 'primary', id: 'train-new', text: TEXT.fresh });
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const main = element('div', { class: 'train-main' });
  view.root.replaceChildren(element('div', { class: 'train' },
    element('h2', { text: TEXT.title }),
    element('p', { class: 'train-intro', text: TEXT.intro }),
    problem,
    element('div', { class: 'train-body' },
      element('nav', { class: 'train-side', 'aria-label': TEXT.list }, fresh, none, list), main)));

  const tell = (text) => {
    problem.hidden = !text;
    problem.textContent = text ?? '';
  };
  const acts = {
    onAgain: async (id) => { show(null); await form.copy(id); },
    onTune: (model) => { show(null); form.tune(model); },
    onGone: () => show(null),
    onChange: () => poll(),
  };
  const run = makeRun(view, acts);
  const race = makeRace(view, acts);
  const form = makeNew({
    onStarted: (id) => { show(id); poll(); },
    kind: before.form,
    onKind: (shown) => { kind = shown === 'pretraining' ? null : shown; remember(); },
  });
  const kindOf = (id) => state.runs.find((each) => each.id === id)?.kind;
  const panelOf = (id) => (kindOf(id) === 'race' ? race : run);

  function show(id) {
    if (id !== state.current && kindOf(id) !== kindOf(state.current)) state.compared.clear();
    state.current = id;
    setPlace({ run: id });
    state.compared.delete(id);
    const panel = panelOf(id);
    main.replaceChildren(id ? panel.root : form.root);
    panel.show(id, [...state.compared]);
    if (!id) form.refresh();
    remember();
    drawList();
  }

  function drawList() {
    const known = new Set(state.runs.map(({ id }) => id));
    for (const [id, card] of cards) if (!known.has(id)) { card.root.remove(); cards.delete(id); }
    const here = kindOf(state.current);
    state.runs.forEach((each, n) => {
      let card = cards.get(each.id);
      if (!card) {
        card = makeCard(() => show(each.id), (on) => {
          if (on) state.compared.add(each.id); else state.compared.delete(each.id);
          run.show(state.current, [...state.compared]);
          remember();
          poll();
        });
        cards.set(each.id, card);
      }
      card.fill(each, each.id === state.current, state.compared.has(each.id), here !== 'race' && each.kind === here);
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
    const { runs, enabled } = await get('runs');
    state.runs = runs;
    fresh.disabled = !enabled && !state.current;
    const known = new Map(runs.map((run) => [run.id, run]));
    for (const id of state.compared) if (known.get(id)?.kind !== known.get(state.current)?.kind) state.compared.delete(id);
    if (state.current && known.has(state.current)) {
      const panel = panelOf(state.current);
      if (!panel.root.isConnected) show(state.current); // a link to a race, whose kind is known only now
      await panel.poll(enabled);
    }
    if (state.current && !known.has(state.current)) {
      const gone = state.current;
      show(null);
      tell(t`There is no run “${gone}” here any more.`);
      return;
    }
    drawList();
    tell(null);
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
      wait = Math.min(10_000, PERIOD * state.failed);
      tell(error.message);
    }
    flying = false;
    timer = setTimeout(poll, wait);
  }

  fresh.addEventListener('click', () => { show(null); form.root.querySelector('button, input, select')?.focus(); });
  document.addEventListener('visibilitychange', () => { if (seen()) poll(); });
  let was = true;
  new ResizeObserver(() => {
    const now = seen();
    if (now && !was) poll();
    was = now;
  }).observe(view.root);
  show(state.current);
  poll();
}
