// Training: the form for a new run. It edits one config.json; presets fill it, the schema explains it.
import { get, post } from './api.js';
import { code } from './areas.js';
import { makeBatch } from './batch.js';
import { forShell, makeShellNote } from './command.js';
import { FALLBACK, FOLLOWS_FAMILY, NUMBERS, PRECISIONS, TEXT, taught } from './form-text.js';
import { chooseModel, copyButton, makeJson } from './parts.js';
import { forgetOwn, makeTexts } from './texts.js';
import { duration, many, sentences } from './words.js';

const { element, format, message, modelTitle, t } = window.Cloze;
const read = (config, path) => path.split('.').reduce((part, key) => part?.[key], config);
function put(config, path, value) {
  const keys = path.split('.');
  const last = keys.pop();
  const part = keys.reduce((inner, key) => (inner[key] ??= {}), config);
  if (value === undefined) delete part[last]; else part[last] = value;
}

export function makeForm({ onStarted }) {
  let offer = null; // what the server offers
  let config = structuredClone(FALLBACK);
  let source = null; // run that the settings were copied from
  let [checked, changes] = [0, 0]; // changes of the settings: what was found for others is not shown
  let lost = false; // what the server offers could not be read
  let preset = null;
  const inputs = new Map();

  const off = element('p', { class: 'problem', role: 'status', hidden: true });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const note = element('p', { class: 'train-note', hidden: true });
  const presets = element('div', { class: 'train-presets', role: 'group', 'aria-label': TEXT.preset });
  const reads = makeTexts({
    prefix: 'train',
    chosen: () => [...config.data.texts, ...(config.data.training_only ?? [])],
    choose: (pattern, on) => {
      const others = (list) => list.filter((each) => each !== pattern);
      config.data.texts = [...others(config.data.texts), ...(on ? [pattern] : [])];
      if (config.data.training_only) config.data.training_only = others(config.data.training_only);
    },
    onChange: () => { fill(); changed(); },
    onProblem: (error) => { unsent = error; fail(null); },
  });
  const family = element('select', { id: 'train-family' });
  const shape = element('select', { id: 'train-shape' });
  const from = element('select', { id: 'train-from' });
  const name = element('input', { type: 'text', id: 'train-title', maxlength: '60', autocomplete: 'off' });
  const precision = element('select', { id: 'train-precision' });
  const fresh = element('div', { class: 'train-row' });
  const summary = element('p', { class: 'train-sum', role: 'status' });
  const defaults = element('p', { class: 'train-note' });
  const time = element('p', { class: 'train-note', role: 'status' });
  const command = code(TEXT.command);
  const before = makeShellNote();
  const json = makeJson(TEXT.json);
  const batch = makeBatch();

  const field = (label, input, help) => element('label', { class: 'train-field', title: help }, element('span', { text: label }), input);
  const number = (path, label, step = '1') => {
    const input = element('input', { type: 'number', id: `train-${path.replaceAll('.', '-')}`, step, inputmode: 'decimal' });
    input.addEventListener('input', () => {
      put(config, path, input.value === '' ? undefined : Number(input.value));
      changed();
    });
    inputs.set(path, input);
    return field(label, input);
  };
  const button = (text, id, act, kind = 'quiet outlined') => element('button', { type: 'button', class: kind, id, text, onclick: act });
  const start = button(TEXT.start, 'train-start', () => begin(), 'primary');
  const showBatch = button(TEXT.batch, 'train-batch', () => tryOut(showBatch, async (still, whole) => {
    const found = await post('preview', await whole());
    if (still()) batch.show(found);
  }));
  const measure = button(TEXT.time, 'train-time', () => estimate());
  let trial = null; // who goes through the recipes waits for the last one alone
  const estimate = () => tryOut(measure, async (still, whole) => {
    const asked = JSON.stringify(config);
    trial?.abort();
    const { signal } = trial = new AbortController();
    time.textContent = TEXT.measuring;
    try {
      const found = await post('estimate', await whole(), signal);
      if (!still()) return;
      const known = offer.presets.find(({ name: each }) => each === preset);
      if (known && JSON.stringify(known.config) === asked) { known.seconds = found.seconds; fillPresets(); }
      time.textContent = t`At most about ${duration(found.seconds)} on this machine as busy as it is now, at ${format.count(Math.round(found.tokens_per_second))} tokens per second.`;
    } catch (error) {
      if (signal.aborted) return;
      if (still()) time.textContent = '';
      throw error;
    }
  });
  const custom = element('span', { class: 'train-row' }, number('model.overrides.layers', TEXT.layers), number('model.overrides.width', TEXT.width));
  fresh.append(field(TEXT.family, family), field(TEXT.shape, shape), custom, number('tokenizer.vocabulary', TEXT.vocabulary));

  const section = (title, ...children) => element('section', {}, element('h4', { text: title }), ...children);
  const root = element('div', { class: 'train-form' },
    element('div', { class: 'card' },
      element('h3', { text: TEXT.title }), off, note,
      section(TEXT.preset, presets),
      section(TEXT.texts, reads.root),
      section(TEXT.model, element('div', { class: 'train-row' }, field(TEXT.from, from)), fresh, defaults),
      section(TEXT.training, element('div', { class: 'train-row' }, ...NUMBERS.map((each) => number(...each)), field(TEXT.precision, precision)),
        field(TEXT.name, name)),
      element('details', { class: 'train-all' }, element('summary', { text: TEXT.json }),
        element('p', { class: 'train-note', text: TEXT.jsonHint }), json.root, button(TEXT.apply, 'train-apply', () => useJson())),
      element('div', { class: 'train-end' }, summary, time, problem,
        element('p', { class: 'train-actions' }, start, showBatch, measure),
        element('details', {}, element('summary', { text: TEXT.command }), command, before.root,
          element('p', { class: 'train-actions' }, copyButton(command), button(TEXT.save, 'train-save', () => save()))))),
    batch.root);

  let [unsent, denied] = [null, null]; // why a text could not be sent, or what was clicked not be done: no later check makes that good
  const fail = (error) => {
    const told = unsent ?? denied ?? error;
    problem.hidden = !told;
    problem.textContent = told?.message ?? told ?? '';
  };
  const deny = (error) => { denied = error; fail(null); };

  const busy = new Set(); // clicked and not done: a second click would start a second run
  const arm = () => { for (const each of [start, showBatch, measure]) each.disabled = !offer?.enabled || busy.has(each); };

  /** act(still, whole): whether the settings are still those that were sent; what is sent, once a file under way has become part of it. */
  async function tryOut(control, act) {
    busy.add(control);
    arm();
    deny(null);
    let before = changes;
    const still = () => before === changes;
    const whole = async () => { const values = await form(); before = changes; return values; };
    try { await act(still, whole); } catch (error) { if (control === start || still()) deny(error); }
    busy.delete(control);
    arm();
  }

  // --- drawing ----------------------------------------------------------------------------

  function fill() {
    if (!offer) return; // it comes
    for (const [path, input] of inputs) {
      const about = offer.fields[path] ?? {};
      if (document.activeElement !== input) input.value = read(config, path) ?? '';
      input.placeholder = about.default ?? '';
      if (about.least !== null && about.least !== undefined) input.min = about.least;
      if (about.most !== null && about.most !== undefined) input.max = about.most;
      input.closest('label').title = message(about.text ?? '');
    }
    if (document.activeElement !== name) name.value = config.name ?? '';
    precision.value = config.precision ?? offer.fields.precision?.default ?? 'fp32';
    chooseModel(from, config.model.checkpoint ?? '');
    fresh.hidden = Boolean(config.model.checkpoint);
    reads.fill();
    for (const card of presets.children) card.setAttribute('aria-pressed', String(card.dataset.name === preset));
    json.show(config);
  }

  /** What a recipe takes here, where it was tried; and what it needs. */
  function fillPresets() {
    for (const card of presets.children) {
      const { seconds, gpu } = offer.presets.find(({ name: each }) => each === card.dataset.name) ?? {};
      card.lastChild.textContent = [gpu && !offer.gpu ? TEXT.needsGpu : null, seconds ? t`at most about ${duration(seconds)} here` : null].filter(Boolean).join(' · ');
    }
  }

  function showModel(found) {
    family.value = found.family;
    const value = `${found.layers}x${found.width}`;
    const listed = [...shape.options].some((option) => option.value === value);
    shape.value = listed && custom.dataset.open !== 'yes' ? value : 'other';
    custom.hidden = shape.value !== 'other';
    if (custom.hidden === false) {
      for (const key of ['layers', 'width']) {
        const input = inputs.get(`model.overrides.${key}`);
        if (!input.value && document.activeElement !== input) input.placeholder = found[key];
      }
    }
  }

  function describe(found) {
    summary.textContent = sentences(
      t`${many(found.parameters)} parameters: ${found.layers} layers of width ${found.width}, ${found.heads} heads. It will read at most ${many(found.tokens)} tokens.`,
      found.generator ? t`The generator that learns beside it has ${many(found.generator)} parameters.` : null);
    defaults.textContent = sentences(...taught(found), t`Change this under “${TEXT.json}”.`);
    reads.show(found);
  }

  // --- asking -----------------------------------------------------------------------------

  let timer = 0;
  function changed() {
    clearTimeout(timer);
    changes += 1;
    [unsent, denied] = [null, null];
    time.textContent = '';
    batch.hide();
    json.show(config);
    timer = setTimeout(check, 300);
  }

  /** What is sent: the config, the texts (the pasted one is sent now), where it was copied from. */
  const form = async () => ({ config, texts: await reads.ids(), source });

  async function check() {
    checked += 1;
    const mine = checked;
    try {
      const found = await post('check', await form());
      if (mine !== checked) return;
      describe(found);
      showModel(found);
      fail(null);
      root.dataset.state = 'ready';
    } catch (error) {
      if (mine !== checked) return;
      summary.textContent = '';
      fail(error);
      root.dataset.state = 'error';
    }
    const called = fileName();
    before.fill(config, reads.names());
    command.textContent = `python -m core_models.training ${called}.json --run runs/${called}`;
  }

  const fileName = () => (config.name ?? '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'my-run';

  async function save() {
    const { download } = await import('../../parts/export.js');
    download(`${fileName()}.json`, `${JSON.stringify(forShell(config, reads.names()), null, 2)}\n`, 'application/json');
  }

  async function begin() {
    await tryOut(start, async () => {
      const { id } = await post('runs', await form());
      forgetOwn(config);
      source = null;
      reads.clear();
      onStarted(id);
    });
  }

  function use(values, label = null) {
    config = structuredClone(values);
    config.model ??= {};
    json.forget();
    config.data ??= {};
    config.data.texts ??= [];
    preset = label;
    custom.dataset.open = '';
    note.hidden = true;
    source = null;
    fill();
    changed();
  }

  function useJson() {
    try {
      const values = json.read();
      const kept = source;
      use(values);
      source = kept;
    } catch (error) { fail(t`This is not JSON: ${error.message}`); }
  }

  family.addEventListener('change', () => {
    const chosen = offer.families.find((each) => each.name === family.value);
    const [layers, width] = shape.value === 'other' ? [inputs.get('model.overrides.layers').value, inputs.get('model.overrides.width').value].map(Number)
      : shape.value.split('x').map(Number);
    config.model = { size: chosen.size, overrides: { layers: layers || 2, width: width || 128 }, dropout: config.model.dropout ?? 0 };
    for (const path of FOLLOWS_FAMILY) delete config[path];
    delete config.data.format;
    delete config.data.singles;
    if (config.tokenizer) { delete config.tokenizer.kind; delete config.tokenizer.lowercase; }
    preset = null;
    fill();
    changed();
  });
  shape.addEventListener('change', () => {
    custom.dataset.open = shape.value === 'other' ? 'yes' : '';
    custom.hidden = shape.value !== 'other';
    if (shape.value === 'other') return;
    const [layers, width] = shape.value.split('x').map(Number);
    const chosen = offer.families.find((each) => each.name === family.value) ?? offer.families[0];
    config.model = { ...config.model, size: chosen.size, overrides: { layers, width } };
    fill();
    changed();
  });
  from.addEventListener('change', () => {
    const dropout = config.model.dropout ?? 0;
    config.model = from.value ? { checkpoint: from.value, dropout } : { ...structuredClone(FALLBACK.model), dropout };
    fill();
    changed();
  });
  precision.addEventListener('change', () => { put(config, 'precision', precision.value); changed(); });
  name.addEventListener('input', () => { put(config, 'name', name.value || undefined); changed(); });

  // --- opening ----------------------------------------------------------------------------

  async function refresh() {
    denied = null;
    try {
      const found = await get('form');
      const first = !offer;
      [offer, lost] = [found, false];
      off.hidden = offer.enabled;
      off.textContent = message(offer.off ?? '');
      arm();
      if (first) build();
      from.replaceChildren(element('option', { value: '', text: TEXT.scratch }),
        ...offer.models.map((model) => element('option', { value: model.name, text: modelTitle(model.title) })));
      if (first && preset === null && source === null && offer.presets.length) use(offer.presets[0].config, offer.presets[0].name);
      else { fill(); check(); }
    } catch (error) { lost = true; fail(error); }
  }

  function build() {
    presets.replaceChildren(...offer.presets.map((each) => element('button', {
      type: 'button', class: 'train-preset', 'data-name': each.name, 'aria-pressed': 'false',
      onclick: () => { use(each.config, each.name); if (offer.enabled && !each.seconds) estimate(); },
    }, element('b', { text: message(each.title) }), element('span', { text: message(each.config.description ?? '') }),
    element('span', { class: 'train-meta', text: t`${format.count(each.config.steps)} steps × ${each.config.batch_size ?? 32} examples` }),
    element('span', { class: 'train-meta train-preset-time' }))));
    fillPresets();
    if (!offer.presets.length) presets.textContent = TEXT.none;
    reads.build(offer);
    family.replaceChildren(...offer.families.map((each) => element('option', { value: each.name, text: each.title })));
    shape.replaceChildren(...offer.shapes.map(([layers, width]) => element('option', { value: `${layers}x${width}`, text: `${layers} × ${width}` })),
      element('option', { value: 'other', text: TEXT.other }));
    precision.replaceChildren(...(offer.fields.precision?.choices ?? ['fp32']).map((each) => element('option', { value: each, text: PRECISIONS[each] ?? each })));
  }

  return {
    root,
    refresh,
    deny,
    retry: () => { if (lost) refresh(); },
    /** Take the settings of a run over. */
    async copy(id, settings) {
      try {
        if (!offer) await refresh();
        if (!offer) return;
        use(settings);
        source = id;
        note.hidden = false;
        note.textContent = TEXT.copied(id);
        check();
      } catch (error) { fail(error); }
    },
  };
}
