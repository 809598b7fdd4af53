// Training: the form for an objective race.
import { get, post } from './train-api.js';
import { code } from './train-areas.js';
import { copyButton } from './train-parts.js';
import { forgetOwn, makeTexts } from './train-texts.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Race objectives', entrants: 'Who takes part', texts: 'What they read', shared: 'What all share', probe: 'What is measured at the end',
  intro: 'Each trains on the same text, with the same vocabulary, size, seed and number of steps, one after the other. At the end a linear model reads each one’s frozen states.',
  start: 'Start the race', json: 'All settings as experiment.json', apply: 'Use these settings', words: 'Hidden words to guess',
  command: 'The same from the command line', name: 'Name', probeOf: (name) => t`linear probe: ${name}`,
});
// Path, label, step of the number field.
const NUMBERS = [
  ['budget.steps', t`Steps of each`], ['overrides.layers', t`Layers`], ['overrides.width', t`Width`], ['tokenizer.vocabulary', t`Vocabulary`],
  ['data.max_length', t`Longest example`], ['batch_size', t`Batch size`], ['optimizer.learning_rate', t`Learning rate`, 'any'],
  ['schedule.warmup', t`Warm-up steps`], ['seed', t`Seed`],
];
const FIRST = ['masked', 'replaced', 'causal'];
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
  let timer = 0;
  const inputs = new Map();

  const off = element('p', { class: 'problem', role: 'status', hidden: true });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  let unsent = null; // why a text could not be sent: no later check makes that good
  const fail = (error) => {
    const told = unsent ?? error;
    problem.hidden = !told;
    problem.textContent = told?.message ?? told ?? '';
  };
  const entrants = element('div', { class: 'train-entrants' });
  const reads = makeTexts({
    prefix: 'train-race',
    chosen: () => config.data.texts,
    choose: (pattern, on) => { config.data.texts = toggled(config.data.texts, pattern, on); },
    onColumn: (column) => put(config, 'data.column', column),
    onChange: () => { fill(); changed(); },
    onProblem: (error) => { unsent = error; fail(null); },
  });
  const probes = element('div', { class: 'train-texts' });
  const name = element('input', { type: 'text', id: 'train-race-name', maxlength: '60', autocomplete: 'off' });
  const summary = element('p', { class: 'train-sum', role: 'status' });
  const json = element('textarea', { class: 'train-json', rows: '16', spellcheck: 'false', 'aria-label': TEXT.json });
  const command = code(TEXT.command);
  command.textContent = 'python -m core_models.training.race race.json --runs runs/race';
  const field = (label, input) => element('label', { class: 'train-field' }, element('span', { text: label }), input);
  const numbers = NUMBERS.map(([path, label, step]) => {
    const input = element('input', { type: 'number', id: `train-race-${path.replaceAll('.', '-')}`, step: step ?? '1', inputmode: 'decimal' });
    input.addEventListener('input', () => { put(config, path, input.value === '' ? undefined : Number(input.value)); changed(); });
    inputs.set(path, input);
    return field(label, input);
  });
  const start = element('button', { type: 'button', class: 'primary', id: 'train-race-start', text: TEXT.start, onclick: () => begin() });
  const section = (title, ...children) => element('section', {}, element('h4', { text: title }), ...children);
  const root = element('div', { class: 'train-form train-race-form' },
    element('div', { class: 'card' }, element('h3', { text: TEXT.title }), element('p', { class: 'train-note', text: TEXT.intro }), off,
      section(TEXT.entrants, entrants), section(TEXT.texts, reads.root),
      section(TEXT.shared, element('div', { class: 'train-row' }, ...numbers), field(TEXT.name, name)), section(TEXT.probe, probes),
      element('details', { class: 'train-all' }, element('summary', { text: TEXT.json }), json,
        element('button', { type: 'button', class: 'quiet outlined', id: 'train-race-apply', text: TEXT.apply, onclick: () => useJson() })),
      element('div', { class: 'train-end' }, summary, problem, element('p', { class: 'train-actions' }, start),
        element('details', {}, element('summary', { text: TEXT.command }), command, copyButton(command)))));

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
    const taking = new Set(config.entrants.map((each) => each.name));
    const offered = new Set(offer.entrants.map((each) => each.config.name));
    entrants.replaceChildren(...offer.entrants.map((each) => box(each.config.name, message(each.title), taking.has(each.config.name), (on) => {
      config.entrants = [...config.entrants.filter((one) => one.name !== each.config.name), ...(on ? [each.config] : [])];
    })), ...config.entrants.filter((each) => !offered.has(each.name)).map((each) => box(each.name, each.name, true, () => {
      config.entrants = config.entrants.filter((one) => one !== each);
    })));
    reads.fill();
    config.measures ??= {};
    probes.replaceChildren(...offer.probes.map((probe) => box(probe, TEXT.probeOf(probe), (config.measures.probes ?? []).includes(probe),
      (on) => { config.measures.probes = toggled(config.measures.probes, probe, on); })),
    box('words', TEXT.words, config.measures.words !== 0, (on) => { config.measures.words = on ? 200 : 0; }));
    json.value = JSON.stringify(config, null, 2);
  }

  function changed() {
    clearTimeout(timer);
    unsent = null;
    json.value = JSON.stringify(config, null, 2);
    timer = setTimeout(check, 300);
  }

  const sent = async () => ({ config, texts: await reads.ids(), source });

  async function check() {
    checked += 1;
    const mine = checked;
    try {
      const found = await post('check', await sent());
      if (mine !== checked) return;
      summary.textContent = found.steps
        ? t`${found.entrants} models, ${format.count(found.steps)} steps each, ${format.count(found.steps * found.entrants)} in all.`
        : t`${found.entrants} models, the same number of operations each.`;
      fail(null);
      root.dataset.state = 'ready';
    } catch (error) {
      if (mine !== checked) return;
      summary.textContent = '';
      fail(error);
      root.dataset.state = 'error';
    }
  }

  async function begin() {
    start.disabled = true;
    try {
      const { id } = await post('runs', await sent());
      forgetOwn(config);
      source = null;
      reads.clear();
      onStarted(id);
    } catch (error) { fail(error); }
    start.disabled = !offer.enabled;
  }

  function use(values) {
    config = structuredClone(values);
    config.data ??= {};
    config.data.texts ??= [];
    config.entrants ??= [];
    fill();
    changed();
  }

  function useJson() {
    try { use(JSON.parse(json.value)); } catch (error) { fail(t`This is not JSON: ${error.message}`); }
  }

  name.addEventListener('input', () => { put(config, 'name', name.value || undefined); changed(); });

  async function refresh() {
    try {
      const form = await get('form');
      offer = { ...form.race, enabled: form.enabled };
      off.hidden = form.enabled;
      off.textContent = message(form.off ?? '');
      reads.build(form.texts, form.most_bytes);
      start.disabled = !form.enabled;
      if (!config) use({ ...offer.config, entrants: offer.entrants.map((each) => each.config).filter((each) => FIRST.includes(each.name)) });
      else check();
    } catch (error) { fail(error); }
  }

  return {
    root,
    refresh,
    async copy(id) {
      try {
        if (!offer) await refresh();
        const { threads, ...rest } = await get(`runs/${id}/config`);
        source = id;
        use(rest);
      } catch (error) { fail(error); }
    },
  };
}
