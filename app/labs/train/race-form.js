// Training: the form for an objective race.
import { get, post } from './api.js';
import { code, scroll } from './areas.js';
import { makeBatch } from './batch.js';
import { forShell, makeShellNote } from './command.js';
import { copyButton, makeJson } from './parts.js';
import { forgetOwn, makeTexts } from './texts.js';
import { duration, many, setName } from './words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Race objectives', entrants: 'Who takes part', texts: 'What they read', shared: 'What all share', probe: 'What is measured at the end',
  intro: 'Each trains on the same text, with the same vocabulary, size, seed and budget, one after the other. At the end a linear model reads each one’s frozen states.',
  budget: 'What is equal', steps: 'the same number of steps', flops: 'the same number of operations', table: 'What each entrant comes to',
  time: 'How long will it take?', measuring: 'Trying each entrant for a moment …', batch: 'Show the first batch', whose: 'Entrant',
  heads: ['Entrant', 'Family', 'Parameters', 'Steps', 'Operations', 'Time'],
  start: 'Start the race', json: 'All settings as experiment.json', apply: 'Use these settings', words: 'Hidden words to guess',
  command: 'The same from the command line', save: 'Save the settings as a file', name: 'Name', probeOf: (name) => t`linear probe: ${name}`,
});
// Path, label, step of the number field.
const NUMBERS = [
  ['overrides.layers', t`Layers`], ['overrides.width', t`Width`], ['tokenizer.vocabulary', t`Vocabulary`],
  ['data.max_length', t`Longest example`], ['batch_size', t`Batch size`], ['optimizer.learning_rate', t`Learning rate`, 'any'],
  ['schedule.warmup', t`Warm-up steps`], ['seed', t`Seed`],
];
const FIRST = ['masked', 'replaced', 'causal'];
const TERA = 1e12;
/** Operations as people write them: "2.3 × 10¹²". */
function operations(count) {
  const power = Math.floor(Math.log10(count));
  return `${(count / 10 ** power).toFixed(1)} × 10${[...String(power)].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]).join('')}`;
}
const read = (config, path) => path.split('.').reduce((part, key) => part?.[key], config);
function put(config, path, value) {
  const keys = path.split('.');
  const last = keys.pop();
  const part = keys.reduce((inner, key) => (inner[key] ??= {}), config);
  if (value === undefined) delete part[last]; else part[last] = value;
}

export function makeRaceForm({ onStarted }) {
  let offer = null;
  let config = null;
  let source = null;
  let checked = 0;
  let changes = 0; // of the settings: what was found for others is not shown
  let lost = false; // what the server offers could not be read
  let timer = 0;
  let found = null; // what the server made of it
  let seconds = new Map(); // of training, by entrant
  const inputs = new Map();

  const off = element('p', { class: 'problem', role: 'status', hidden: true });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  let unsent = null; // why a text could not be sent: no later check makes that good
  let denied = null; // why what was clicked was not done: nor that
  const fail = (error) => {
    const told = unsent ?? denied ?? error;
    problem.hidden = !told;
    problem.textContent = told?.message ?? told ?? '';
  };
  const deny = (error) => { denied = error; fail(null); };
  const entrants = element('div', { class: 'train-entrants' });
  const reads = makeTexts({
    prefix: 'train-race',
    chosen: () => config.data.texts,
    choose: (pattern, on) => { config.data.texts = toggled(config.data.texts, pattern, on); },
    onChange: () => { fill(); changed(); },
    onProblem: (error) => { unsent = error; fail(null); },
  });
  const probes = element('div', { class: 'train-texts' });
  const name = element('input', { type: 'text', id: 'train-race-name', maxlength: '60', autocomplete: 'off' });
  const summary = element('p', { class: 'train-sum', role: 'status' });
  const json = makeJson(TEXT.json);
  const command = code(TEXT.command);
  const before = makeShellNote();
  const field = (label, input) => element('label', { class: 'train-field' }, element('span', { text: label }), input);
  const numbers = NUMBERS.map(([path, label, step]) => {
    const input = element('input', { type: 'number', id: `train-race-${path.replaceAll('.', '-')}`, step: step ?? '1', inputmode: 'decimal' });
    input.addEventListener('input', () => { put(config, path, input.value === '' ? undefined : Number(input.value)); changed(); });
    inputs.set(path, input);
    return field(label, input);
  });
  const budget = element('select', { id: 'train-race-budget' }, element('option', { value: 'steps', text: TEXT.steps }), element('option', { value: 'flops', text: TEXT.flops }));
  const amount = element('input', { type: 'number', id: 'train-race-budget-amount', min: '0', step: 'any', inputmode: 'decimal' });
  const amountName = element('span');
  const amountField = element('label', { class: 'train-field' }, amountName, amount);
  const table = element('table', { class: 'train-entrant-table' });
  const rows = scroll(TEXT.table, table);
  rows.hidden = true;
  const time = element('p', { class: 'train-note', role: 'status' });
  const whose = element('select', { id: 'train-race-whose-batch', 'aria-label': TEXT.whose });
  const batch = makeBatch();
  const busy = new Set(); // clicked and not done: a second click would start a second race
  const arm = () => { for (const each of [start, measure, showBatch]) each.disabled = !offer?.enabled || busy.has(each); };
  const act = (text, id, work) => {
    const control = element('button', { type: 'button', class: 'quiet outlined', id, text });
    control.addEventListener('click', async () => {
      busy.add(control);
      arm();
      deny(null);
      let before = changes;
      const still = () => before === changes;
      const whole = async () => { const values = await sent(); before = changes; return values; }; // a file under way has become part of it
      try { await work(still, whole); } catch (error) { if (still()) deny(error); }
      busy.delete(control);
      arm();
    });
    return control;
  };
  const measure = act(TEXT.time, 'train-race-time', async (still, whole) => {
    time.textContent = TEXT.measuring;
    try {
      const found = await post('estimate', await whole());
      if (!still()) return;
      time.textContent = t`At most about ${duration(found.seconds)} of training on this machine as busy as it is now; measuring them comes on top.`;
      seconds = new Map(found.entrants.map((each) => [each.name, each.seconds]));
      fillTable();
    } catch (error) { if (still()) time.textContent = ''; throw error; }
  });
  const showBatch = act(TEXT.batch, 'train-race-batch', async (still, whole) => {
    // The server shows that of the first entrant.
    const [first, others] = [config.entrants.filter(({ name: each }) => each === whose.value), config.entrants.filter(({ name: each }) => each !== whose.value)];
    const found = await post('preview', { ...await whole(), config: { ...config, entrants: [...first, ...others] } });
    if (still()) batch.show(found);
  });
  const start = element('button', { type: 'button', class: 'primary', id: 'train-race-start', text: TEXT.start, onclick: () => begin() });
  const section = (title, ...children) => element('section', {}, element('h4', { text: title }), ...children);
  const root = element('div', { class: 'train-form train-race-form' },
    element('div', { class: 'card' }, element('h3', { text: TEXT.title }), element('p', { class: 'train-note', text: TEXT.intro }), off,
      section(TEXT.entrants, entrants), section(TEXT.texts, reads.root),
      section(TEXT.shared, element('div', { class: 'train-row train-budget' }, field(TEXT.budget, budget), amountField),
        element('div', { class: 'train-row' }, ...numbers), field(TEXT.name, name)), section(TEXT.probe, probes),
      element('details', { class: 'train-all' }, element('summary', { text: TEXT.json }), json.root,
        element('button', { type: 'button', class: 'quiet outlined', id: 'train-race-apply', text: TEXT.apply, onclick: () => useJson() })),
      element('div', { class: 'train-end' }, summary, rows, time, problem, element('p', { class: 'train-actions' }, start, measure),
        element('p', { class: 'train-actions' }, showBatch, element('label', { class: 'train-whose' }, element('span', { text: TEXT.whose }), whose)),
        element('details', {}, element('summary', { text: TEXT.command }), command, before.root,
          element('p', { class: 'train-actions' }, copyButton(command),
            element('button', { type: 'button', class: 'quiet outlined', id: 'train-race-save', text: TEXT.save, onclick: () => save() }))))),
    batch.root);
  const wait = (waiting) => { for (const each of root.querySelectorAll('section, details')) each.inert = waiting; };
  wait(true); // there are no settings to change yet

  function box(value, text, on, toggle) {
    const input = element('input', { type: 'checkbox', value });
    input.checked = on;
    input.addEventListener('change', () => { toggle(input.checked); fill(); changed(); });
    return element('label', { class: 'train-check' }, input, element('span', { text }));
  }
  const toggled = (list, value, on) => [...(list ?? []).filter((each) => each !== value), ...(on ? [value] : [])];

  function fill() {
    for (const [path, input] of inputs) if (document.activeElement !== input) input.value = read(config, path) ?? '';
    if (document.activeElement !== name) name.value = config.name ?? '';
    const inFlops = config.budget?.flops !== undefined && config.budget?.flops !== null;
    budget.value = inFlops ? 'flops' : 'steps';
    amountName.textContent = inFlops ? t`Operations of each, in trillions` : t`Steps of each`;
    if (document.activeElement !== amount) amount.value = inFlops ? config.budget.flops / TERA : config.budget?.steps ?? '';
    const taking = new Set(config.entrants.map((each) => each.name));
    const offered = new Set(offer.entrants.map((each) => each.config.name));
    entrants.replaceChildren(...offer.entrants.map((each) => box(each.config.name, message(each.title), taking.has(each.config.name), (on) => {
      config.entrants = [...config.entrants.filter((one) => one.name !== each.config.name), ...(on ? [each.config] : [])];
    })), ...config.entrants.filter((each) => !offered.has(each.name)).map((each) => box(each.name, each.name, true, () => {
      config.entrants = config.entrants.filter((one) => one !== each);
    })));
    const before = whose.value;
    whose.replaceChildren(...config.entrants.map(({ name: each }) => element('option', { value: each, text: each })));
    whose.value = taking.has(before) ? before : config.entrants[0]?.name ?? '';
    reads.fill();
    config.measures ??= {};
    probes.replaceChildren(...offer.probes.map((probe) => box(probe, TEXT.probeOf(setName(probe)), (config.measures.probes ?? []).includes(probe),
      (on) => { config.measures.probes = toggled(config.measures.probes, probe, on); })),
    box('words', TEXT.words, config.measures.words !== 0, (on) => { config.measures.words = on ? 200 : 0; }));
    json.show(config);
  }

  function changed() {
    clearTimeout(timer);
    changes += 1;
    [unsent, denied] = [null, null];
    time.textContent = '';
    seconds = new Map();
    batch.hide();
    json.show(config);
    timer = setTimeout(check, 300);
  }

  const sent = async () => ({ config, texts: await reads.ids(), source });

  async function check() {
    checked += 1;
    const mine = checked;
    try {
      const answer = await post('check', await sent());
      if (mine !== checked) return;
      found = answer;
      summary.textContent = found.steps
        ? t`${found.entrants} models, ${format.count(found.steps)} steps each, ${format.count(found.steps * found.entrants)} in all.`
        : t`${found.entrants} models, ${operations(found.flops)} operations each. Steps are those with examples as long as allowed; with shorter ones there are more.`;
      fillTable();
      reads.show(found);
      fail(null);
      root.dataset.state = 'ready';
    } catch (error) {
      if (mine !== checked) return;
      summary.textContent = '';
      rows.hidden = true;
      fail(error);
      root.dataset.state = 'error';
    }
    const called = fileName();
    before.fill(config, reads.names());
    command.textContent = `python -m core_models.training.race ${called}.json --runs runs/${called}`;
  }

  const fileName = () => (config.name ?? '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'race';

  async function save() {
    const { download } = await import('../../parts/export.js');
    download(`${fileName()}.json`, `${JSON.stringify(forShell(config, reads.names()), null, 2)}\n`, 'application/json');
  }

  function fillTable() {
    rows.hidden = !found?.rows.length;
    if (rows.hidden) return;
    const timed = seconds.size > 0;
    const heads = timed ? TEXT.heads : TEXT.heads.slice(0, -1);
    table.replaceChildren(element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col', text })))),
      element('tbody', {}, ...found.rows.map((row) => element('tr', { 'data-entrant': row.name }, element('th', { scope: 'row', text: row.name }),
        element('td', { text: row.title }),
        element('td', { text: row.generator ? t`${many(row.parameters)} and a generator of ${many(row.generator)}` : many(row.parameters) }),
        element('td', { text: format.count(row.steps) }), element('td', { text: operations(row.flops) }),
        ...(timed ? [element('td', { text: seconds.has(row.name) ? duration(seconds.get(row.name)) : '' })] : [])))));
  }

  budget.addEventListener('change', () => {
    // About the same race in the other unit.
    const each = found?.rows ?? [];
    const mean = (key) => each.reduce((sum, row) => sum + row[key], 0) / each.length;
    if (budget.value === 'flops') config.budget = { flops: each.length ? Number(mean('flops').toPrecision(2)) : TERA };
    else config.budget = { steps: each.length ? Math.max(1, Math.round(mean('steps'))) : 400 };
    fill();
    changed();
  });
  amount.addEventListener('input', () => {
    const value = amount.value === '' ? undefined : Number(amount.value);
    config.budget = budget.value === 'flops' ? { flops: value === undefined ? value : value * TERA } : { steps: value };
    changed();
  });

  async function begin() {
    busy.add(start);
    arm();
    deny(null);
    try {
      const { id } = await post('runs', await sent());
      forgetOwn(config);
      source = null;
      reads.clear();
      onStarted(id);
    } catch (error) { deny(error); }
    busy.delete(start);
    arm();
  }

  function use(values) {
    config = structuredClone(values);
    config.data ??= {};
    json.forget();
    config.data.texts ??= [];
    config.entrants ??= [];
    fill();
    changed();
  }

  function useJson() {
    try { use(json.read()); } catch (error) { fail(t`This is not JSON: ${error.message}`); }
  }

  name.addEventListener('input', () => { put(config, 'name', name.value || undefined); changed(); });

  async function refresh() {
    denied = null;
    try {
      const form = await get('form');
      lost = false;
      offer = { ...form.race, enabled: form.enabled };
      off.hidden = form.enabled;
      off.textContent = message(form.off ?? '');
      reads.build(form);
      arm();
      wait(false);
      if (!config) use({ ...offer.config, entrants: offer.entrants.map((each) => each.config).filter((each) => FIRST.includes(each.name)) });
      else check();
    } catch (error) { lost = true; fail(error); }
  }

  return {
    root,
    refresh,
    deny,
    retry: () => { if (lost) refresh(); },
    async copy(id, { threads, ...rest }) {
      try {
        if (!offer) await refresh();
        if (!offer) return;
        source = id;
        use(rest);
      } catch (error) { fail(error); }
    },
  };
}
