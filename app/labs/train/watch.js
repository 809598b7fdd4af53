// Training: asks the server what to show of runs, again and again, and hands it to Gradio's components (app/labs/train/runs.py).
import { own, post } from './api.js';

const { asker, keep, kept, message, modelTitle, openTab, phrase, place, register, setPlace, t } = window.Cloze;
const KINDS = ['pretraining', 'task', 'race'];
const AS_IT_IS = { __type__: 'update' };
const MOST_COMPARED = 8;
const PERIOD = 1500; // milliseconds between two questions while a run is at work
const PATIENT = 5000; // and while none is
const LONGEST = 10_000; // while the server is silent

// --- values for Gradio's components -------------------------------------------------------------

const views = {};
let onStarted = () => {};
for (const name of ['wish', 'tick']) register(`train-${name}`, (view) => { views[name] = view; });
register('train-started', (view) => { view.onValue(() => { if (view.value?.id) onStarted(view.value.id); }); });

let waiting = {}; // properties by the name of their component, until Gradio takes them
let ticks = 0;
function give(parts) {
  for (const [name, more] of Object.entries(parts)) waiting[name] = { ...waiting[name], ...more };
  ticks += 1;
  views.tick.value = { ticks };
}
const line = (text) => ({ value: text ? { text, told: ['{0}', text] } : { text: '' } });

/** Texts of Python, told as their key and values, in the page's language. */
function spoken(value) {
  if (Array.isArray(value)) return value.map(spoken);
  if (value?.constructor !== Object || value.words) return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0] === 'told') return phrase(value.told);
  return Object.fromEntries(keys.map((key) => [key, spoken(value[key])]));
}
window.Cloze.takeShown = (names) => {
  const found = waiting;
  waiting = {};
  const rooted = ({ link, ...more }) => (link ? { ...more, link: window.ClozeRoot + link } : more);
  return names.map((name) => (found[name] ? { ...AS_IT_IS, ...rooted(spoken(found[name])) } : AS_IT_IS));
};

/** Choices that Python gives while the page is open, in the page's language: titles of models, and all others. */
const ONE_WAY = ' – reads from left to right';
const called = (title) => {
  if (title.endsWith(ONE_WAY)) return t`${called(title.slice(0, -ONE_WAY.length))} – reads from left to right`;
  return modelTitle(title) === title ? message(title) : modelTitle(title);
};
window.Cloze.trainChoices = ({ choices }) => ({ ...AS_IT_IS, choices: choices.map(([title, name]) => [called(title), name]) });

/** Take the run out of the address. The address follows the sentence, and does not while that has none: without a server, say. */
function forgetRun() {
  const values = new URLSearchParams(location.hash.slice(1));
  if (!values.has('run')) return;
  values.delete('run');
  history.replaceState(null, '', `${location.pathname}${location.search}${values.size ? `#${values}` : ''}`);
}

export function mountWatch(view) {
  const before = kept('train') ?? {}; // as a stranger may have written it
  const overlaid = Array.isArray(before.with) ? before.with.filter((id) => typeof id === 'string') : [];
  const wish = { run: place.run ?? null, with: overlaid.slice(0, MOST_COMPARED), what: null, by: null, entrant: null };
  const lab = document.getElementById('train-lab');
  const form = document.getElementById('train-forms');
  let kind = KINDS.includes(before.form) ? before.form : KINDS[0]; // of the form
  let asked = Boolean(before.form && !wish.run); // somebody wanted the form: it stays when the page is opened again
  let decided = Boolean(wish.run || before.form); // a link says what is shown; else the newest curve, or the form where there is none
  let seen = {}; // marks of what the page has
  let names = {};
  let turn = 0; // of what was asked of one run: what is answered later, to another, is not shown
  let marked = null; // the run that the list marks: who has chosen the next one already is not called back by the last one's answer
  let doomed = null; // the run that is to be deleted, if the answer is yes
  let told = null; // a message that stays until another run is shown
  const tell = (text) => give({ problem: line(text) });
  const remember = () => keep('train', {
    ...(kind === KINDS[0] && !asked ? {} : { form: kind }), ...(wish.run && wish.with.length ? { with: wish.with } : {}),
  });

  // What a keyboard has pressed is gone: it goes on here.
  const goOn = (at = '#train-list button') => document.querySelector(at)?.focus({ preventScroll: true });
  function show(id, wanted = false) {
    asked = !id && (asked || wanted);
    if (id !== wish.run) Object.assign(wish, { what: null, by: null, entrant: null, with: wish.with.filter((other) => other !== id) });
    [wish.run, seen, told, doomed, opening] = [id, { list: seen.list }, null, null, null];
    turn += 1;
    setPlace({ run: id });
    if (!id) forgetRun();
    if (document.getElementById('train-main').contains(document.activeElement)) goOn();
    lab.dataset.shows = id ? 'waiting' : 'form'; // nothing of another run stands there until its own report is there
    give({ ...(id === marked ? {} : { list: { value: id } }), sure: { visible: false }, problem: line(null), ...(id ? { title: line(names[id] ?? id) } : {}) });
    marked = id;
    remember();
    look();
  }

  // --- asking: one question at a time, only while the lab is seen -------------------------------

  let timer = 0;
  let flying = null; // what can be called off
  let failed = 0;
  const shown = () => view.root.offsetParent !== null && !document.hidden;

  function take(found) {
    ({ seen, names } = found);
    give(found.parts);
    if (wish.run && !found.run) {
      const gone = t`There is no run “${wish.run}” here any more.`;
      show(null);
      told = gone;
    } else if (!decided) {
      decided = true;
      show(found.first);
    } else {
      if (found.run) lab.dataset.shows = 'run';
      if (found.run && found.others.length < wish.with.length) { wish.with = found.others; remember(); }
    }
    tell(told);
  }

  async function look() {
    clearTimeout(timer);
    flying?.abort();
    flying = null;
    if (!view.root.isConnected || !shown()) return; // the observers below wake it up
    const mine = new AbortController();
    flying = mine;
    let wait = PATIENT;
    try {
      const found = await post('shown', { ...wish, seen }, mine.signal);
      if (flying !== mine) return;
      failed = 0;
      flying = null;
      if (found.busy) wait = PERIOD;
      take(found);
      if (flying) return; // another run is asked for already
    } catch (error) {
      if (flying !== mine) return;
      flying = null;
      failed += 1;
      if (!decided) { decided = true; lab.dataset.shows = 'form'; }
      wait = Math.min(LONGEST, PERIOD * failed);
      tell(error.message);
    }
    timer = setTimeout(look, wait);
  }
  document.addEventListener('visibilitychange', () => { if (shown()) look(); });
  let was = true;
  new ResizeObserver(() => {
    const now = shown();
    if (now && !was) look();
    was = now;
  }).observe(view.root);

  // --- what visitors do -------------------------------------------------------------------------

  /** Of what was asked of a run nothing is shown beside another one. */
  async function ask(path, values, then) {
    turn += 1;
    const mine = turn;
    try {
      const found = await post(`runs/${wish.run}/${path}`, values);
      if (mine === turn) then(found, null);
    } catch (error) { if (mine === turn) then(null, error.message); }
  }
  let wishes = 0;
  /** Ask for a form: as it is, with the settings of a run, or for a model to go on from. */
  function fill(more = {}) {
    wishes += 1;
    views.wish.value = { owner: own(), wishes, ...more };
  }
  let revision = 0;
  let opening = null; // what is to be opened; whoever goes elsewhere meanwhile, to another lab or run, is not called back
  const send = asker(view, 'open');
  view.onValue(() => {
    const { rev, error, name, choices } = view.value ?? {};
    if (!opening || rev !== revision) return;
    if (error) {
      told = message(error);
      tell(told);
    } else {
      window.Cloze.chooseModel(name, choices);
      openTab(opening.tab);
    }
  });
  document.addEventListener('cloze:tab', () => { opening = null; });
  // Gradio renames the lines of a radio where they stand: a run that comes in on top while one is pressed moves it to the next line.
  let pressed = null;
  const lineOf = ({ target }) => target.closest?.('#train-runs label')?.querySelector('input').value ?? null;
  document.addEventListener('pointerdown', (event) => { const id = lineOf(event); pressed = id === marked ? null : id; }, true);
  document.addEventListener('keydown', () => { pressed = null; }, true);
  function choose(found) {
    const id = pressed ?? found;
    [pressed, marked] = [null, found];
    if (id === wish.run) look(); else show(id);
  }
  document.addEventListener('click', (event) => { // where the shown run came under it, Gradio would tell of no change
    if (!pressed || lineOf(event) !== marked) return;
    event.preventDefault();
    choose(marked);
  });
  window.Cloze.runs = {
    choose,
    fresh() { decided = true; show(null, true); fill(); form.querySelector('input')?.focus(); },
    ask(more) { Object.assign(wish, more); remember(); look(); },
    act: (action, values = {}) => ask(action, values, (_, error) => { told = error; look(); }),
    doubt() {
      doomed = wish.run;
      give({ sure: { visible: true }, asked: line(t`Delete “${names[doomed] ?? doomed}” for good? Everything it has learned goes with it.`) });
    },
    keep() { doomed = null; goOn('#train-run .acts button.stop'); give({ sure: { visible: false } }); },
    sure() {
      goOn();
      give({ sure: { visible: false } });
      if (doomed !== wish.run) return; // what was asked of one run is not done to another
      ask('delete', { confirm: doomed }, (_, error) => { if (error) { told = error; look(); } else show(null); });
    },
    again() { const copy = wish.run; show(null, true); fill({ copy }); },
    tune({ model }) { show(null, true); fill({ tune: model }); },
    open({ model, detects }, tab = detects ? 'forge' : 'mask') { // a discriminator has no head that fills gaps
      opening = { tab };
      revision += 1;
      send({ rev: revision, name: model });
    },
    tryOut: (text, pair) => ask('try', { text, pair }, (found, error) => give(found ? found.parts : { refused: line(error) })),
  };
  window.Cloze.trainKind = (chosen) => {
    kind = chosen;
    remember();
    form.dataset.kind = chosen; // a form that was drawn stays, with all that is in it
    return KINDS.map((each) => (each === chosen ? { ...AS_IT_IS, visible: true } : AS_IT_IS));
  };
  // Other settings for a form, all but what somebody has changed since they were asked for: what stands there is neither what
  // the question held nor what was put there last.
  const put = Object.fromEntries(KINDS.map((each) => [each, []]));
  const same = (one, other) => JSON.stringify(one ?? '') === JSON.stringify(other ?? '');
  window.Cloze.trainFilled = (form, { values, held }, now) => values.map((value, n) => {
    const { value: plain, ...more } = value?.__type__ ? value : { value, ...AS_IT_IS };
    if (plain === undefined || (n in held && !same(now[n], held[n]) && !same(now[n], put[form][n]))) return more;
    put[form][n] = plain;
    return { ...more, value: plain };
  });
  onStarted = show;
  fill(kind === KINDS[0] ? {} : { kind }); // of a link; later a late answer would undo a choice
  if (decided) show(wish.run);
  else look();
}
