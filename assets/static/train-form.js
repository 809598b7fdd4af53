// Training: the form for a new run. It edits one config.json; presets fill it, the schema explains it.
import { get, post, sendText } from './train-api.js';
import { makeBatch } from './train-batch.js';
import { FALLBACK, FOLLOWS_FAMILY, FORMATS, MASKINGS, NUMBERS, TEXT } from './train-form-text.js';
import { copyButton } from './train-parts.js';
import { duration, many, size } from './train-words.js';

const { element, format } = window.Cloze;
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
  let sent = []; // texts that were sent: {id, name, lines, bytes}
  let checked = 0;
  let preset = null;
  const inputs = new Map();

  const off = element('p', { class: 'problem', role: 'status', hidden: true });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const note = element('p', { class: 'train-note', hidden: true });
  const presets = element('div', { class: 'train-presets', role: 'group', 'aria-label': TEXT.preset });
  const texts = element('div', { class: 'train-texts' });
  const sentList = element('ul', { class: 'train-sent' });
  const paste = element('textarea', { id: 'train-paste', rows: '3', placeholder: TEXT.placeholder });
  const file = element('input', { type: 'file', id: 'train-file', accept: '.txt,.csv,.tsv,.jsonl,.parquet,text/plain' });
  const column = element('input', { type: 'text', id: 'train-column', maxlength: '200', autocomplete: 'off', placeholder: TEXT.columnHint });
  const family = element('select', { id: 'train-family' });
  const shape = element('select', { id: 'train-shape' });
  const from = element('select', { id: 'train-from' });
  const name = element('input', { type: 'text', id: 'train-title', maxlength: '60', autocomplete: 'off' });
  const precision = element('select', { id: 'train-precision' });
  const fresh = element('div', { class: 'train-row' });
  const summary = element('p', { class: 'train-sum', role: 'status' });
  const defaults = element('p', { class: 'train-note' });
  const time = element('p', { class: 'train-note', role: 'status' });
  const command = element('pre', { class: 'code', tabindex: '0' });
  const json = element('textarea', { class: 'train-json', rows: '16', spellcheck: 'false', 'aria-label': TEXT.json });
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
  const showBatch = button(TEXT.batch, 'train-batch', () => tryOut(showBatch, async () => batch.show(await post('preview', await form()))));
  const measure = button(TEXT.time, 'train-time', () => tryOut(measure, async () => {
    time.textContent = TEXT.measuring;
    try {
      const found = await post('estimate', await form());
      time.textContent = `At most about ${duration(found.seconds)} on this machine as busy as it is now, at ${format.count(Math.round(found.tokens_per_second))} tokens per second.`;
    } catch (error) { time.textContent = ''; throw error; }
  }));
  const custom = element('span', { class: 'train-row' }, number('model.overrides.layers', TEXT.layers), number('model.overrides.width', TEXT.width));
  fresh.append(field(TEXT.family, family), field(TEXT.shape, shape), custom, number('tokenizer.vocabulary', 'Vocabulary'));

  const section = (title, ...children) => element('section', {}, element('h4', { text: title }), ...children);
  const root = element('div', { class: 'train-form' },
    element('div', { class: 'card' },
      element('h3', { text: TEXT.title }), off, note,
      section(TEXT.preset, presets),
      section(TEXT.texts, texts, sentList, field(TEXT.paste, paste),
        element('div', { class: 'train-row train-send' }, field(TEXT.file, file), field(TEXT.column, column))),
      section(TEXT.model, element('div', { class: 'train-row' }, field(TEXT.from, from)), fresh, defaults),
      section(TEXT.training, element('div', { class: 'train-row' }, ...NUMBERS.map((each) => number(...each)), field('Precision', precision)),
        field('Name', name)),
      element('details', { class: 'train-all' }, element('summary', { text: TEXT.json }),
        element('p', { class: 'train-note', text: TEXT.jsonHint }), json, button(TEXT.apply, 'train-apply', () => useJson())),
      element('div', { class: 'train-end' }, summary, time, problem,
        element('p', { class: 'train-actions' }, start, showBatch, measure),
        element('details', {}, element('summary', { text: TEXT.command }), command,
          element('p', { class: 'train-actions' }, copyButton(command), button(TEXT.save, 'train-save', () => save()))))),
    batch.root);

  const fail = (error) => { problem.hidden = !error; problem.textContent = error?.message ?? error ?? ''; };

  async function tryOut(control, act) {
    control.disabled = true;
    fail(null);
    try { await act(); } catch (error) { fail(error); }
    control.disabled = !offer?.enabled;
  }

  // --- drawing ----------------------------------------------------------------------------

  function fill() {
    for (const [path, input] of inputs) {
      const about = offer.fields[path] ?? {};
      if (document.activeElement !== input) input.value = read(config, path) ?? '';
      input.placeholder = about.default ?? '';
      if (about.least !== null && about.least !== undefined) input.min = about.least;
      if (about.most !== null && about.most !== undefined) input.max = about.most;
      input.closest('label').title = about.text ?? '';
    }
    if (document.activeElement !== name) name.value = config.name ?? '';
    precision.value = config.precision ?? offer.fields.precision?.default ?? 'fp32';
    from.value = config.model.checkpoint ?? '';
    fresh.hidden = Boolean(config.model.checkpoint);
    for (const box of texts.querySelectorAll('input')) box.checked = [...config.data.texts, ...(config.data.training_only ?? [])].includes(box.value);
    sentList.replaceChildren(...sent.map((text) => element('li', {},
      element('span', { text: `${text.name}: ${text.column ? `column “${text.column}”` : `${format.count(text.lines)} lines`}, ${size(text.bytes)}` }),
      text.sample?.length ? element('span', { class: 'train-note', text: `begins “${text.sample[0].slice(0, 90)}”` }) : null,
      button(TEXT.remove, '', () => { sent = sent.filter((each) => each !== text); fill(); changed(); }, 'quiet'))));
    for (const card of presets.children) card.setAttribute('aria-pressed', String(card.dataset.name === preset));
    json.value = JSON.stringify(config, null, 2);
    json.dataset.old = json.value;
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
    summary.textContent = `${many(found.parameters)} parameters: ${found.layers} layers of width ${found.width}, ${found.heads} heads. `
      + `It will read at most ${many(found.tokens)} tokens.`;
    const { masking } = found;
    const goals = Object.entries(found.objectives).map(([key, weight]) => `${key.replaceAll('_', ' ')}${weight === 1 ? '' : ` (× ${weight})`}`);
    const split = masking.split.map((share) => Math.round(share * 100)).join('/');
    defaults.textContent = `Learns: ${goals.join(', ')}. Examples: ${FORMATS[found.format] ?? found.format}. `
      + `Hides ${Math.round(masking.rate * 100)} %: ${MASKINGS[masking.kind] ?? masking.kind} (${split} hidden/random/kept)`
      + `${masking.dynamic ? ', drawn anew each time' : ', drawn once'}. Change this under “${TEXT.json}”.`;
  }

  // --- asking -----------------------------------------------------------------------------

  let timer = 0;
  let pasted = null; // the pasted text that was sent last, and its entry
  function changed() {
    clearTimeout(timer);
    time.textContent = '';
    batch.hide();
    json.value = JSON.stringify(config, null, 2);
    timer = setTimeout(check, 300);
  }

  /** What is sent: the config, the texts (the pasted one is sent now), where it was copied from. */
  async function form() {
    const text = paste.value.trim() ? paste.value : '';
    if (text && pasted?.text !== text) pasted = { text, entry: await sendText('pasted.txt', new Blob([text])) };
    if (!text) pasted = null;
    return { config, texts: [...sent.map(({ id }) => id), ...(pasted ? [pasted.entry.id] : [])], source };
  }

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
    command.textContent = `python -m core_models.training ${called}.json --run runs/${called}`;
  }

  const fileName = () => (config.name ?? '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'my-run';

  async function save() {
    const { download } = await import('./attention-export.js');
    download(`${fileName()}.json`, `${JSON.stringify(config, null, 2)}\n`, 'application/json');
  }

  async function begin() {
    await tryOut(start, async () => {
      const { id } = await post('runs', await form());
      [sent, pasted, source, paste.value] = [[], null, null, ''];
      onStarted(id);
    });
  }

  function use(values, label = null) {
    config = structuredClone(values);
    config.model ??= {};
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
      const values = JSON.parse(json.value);
      const kept = source;
      use(values);
      source = kept;
    } catch (error) { fail(`This is not JSON: ${error.message}`); }
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
  paste.addEventListener('change', changed);
  file.addEventListener('change', async () => {
    const chosen = file.files[0];
    if (!chosen) return;
    fail(null);
    if (chosen.size > offer.most_bytes) { fail(`${chosen.name} has ${size(chosen.size)}; up to ${size(offer.most_bytes)} go.`); file.value = ''; return; }
    summary.textContent = TEXT.sending;
    try {
      const text = await sendText(chosen.name, chosen, column.value.trim());
      if (text.column) put(config, 'data.column', text.column);
      sent = [...sent.filter((each) => each.id !== text.id), text];
      fill();
      changed();
    } catch (error) { summary.textContent = ''; fail(error); }
    file.value = '';
  });

  // --- opening ----------------------------------------------------------------------------

  async function refresh() {
    try {
      const first = !offer;
      offer = await get('form');
      off.hidden = offer.enabled;
      off.textContent = offer.off ?? '';
      for (const control of [start, showBatch, measure]) control.disabled = !offer.enabled;
      if (first) build();
      const kept = from.value;
      from.replaceChildren(element('option', { value: '', text: TEXT.scratch }),
        ...offer.models.map((model) => element('option', { value: model.name, text: model.title })));
      from.value = kept;
      if (first && preset === null && source === null && offer.presets.length) use(offer.presets[0].config, offer.presets[0].name);
      else { fill(); check(); }
    } catch (error) { fail(error); }
  }

  function build() {
    presets.replaceChildren(...offer.presets.map((each) => element('button', {
      type: 'button', class: 'train-preset', 'data-name': each.name, 'aria-pressed': 'false',
      onclick: () => use(each.config, each.name),
    }, element('b', { text: each.title }), element('span', { text: each.config.description ?? '' }),
    element('span', { class: 'train-meta', text: `${format.count(each.config.steps)} steps × ${each.config.batch_size ?? 32} examples` }))));
    if (!offer.presets.length) presets.textContent = TEXT.none;
    texts.replaceChildren(...offer.texts.map((text) => {
      const box = element('input', { type: 'checkbox', value: text.pattern });
      box.addEventListener('change', () => {
        const others = (list) => list.filter((each) => each !== text.pattern);
        config.data.texts = [...others(config.data.texts), ...(box.checked ? [text.pattern] : [])];
        if (config.data.training_only) config.data.training_only = others(config.data.training_only);
        fill();
        changed();
      });
      return element('label', { class: 'train-check' }, box, element('span', { text: text.title }),
        element('span', { class: 'train-note', text: size(text.bytes) }));
    }));
    family.replaceChildren(...offer.families.map((each) => element('option', { value: each.name, text: each.title })));
    shape.replaceChildren(...offer.shapes.map(([layers, width]) => element('option', { value: `${layers}x${width}`, text: `${layers} × ${width}` })),
      element('option', { value: 'other', text: TEXT.other }));
    precision.replaceChildren(...(offer.fields.precision?.choices ?? ['fp32']).map((each) => element('option', { value: each, text: each })));
  }

  return {
    root,
    refresh,
    /** Take the settings of a run over. */
    async copy(id) {
      try {
        if (!offer) await refresh();
        use(await get(`runs/${id}/config`));
        source = id;
        note.hidden = false;
        note.textContent = TEXT.copied(id);
        check();
      } catch (error) { fail(error); }
    },
  };
}
