// Training: the form for a fine-tuning.
import { get, post } from './api.js';
import { code } from './areas.js';
import { makeBatch } from './batch.js';
import { forShell, makeShellNote } from './command.js';
import { chooseModel, copyButton } from './parts.js';
import { makeSet } from './set.js';
import { duration, many, sentences } from './words.js';

const { element, format, message, modelTitle, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Fine-tune a model', set: 'What it learns', model: 'What it starts from', training: 'How it learns',
  from: 'Checkpoint', scratch: 'Compare with the same model without pretraining (takes as long again)',
  apart: 'Encode the two texts apart and compare them (bi-encoder)', mix: 'Read the tags from a learnt mix of all layers',
  start: 'Start fine-tuning', batch: 'Show the first batch', time: 'How long will it take?', measuring: 'Trying it for two seconds …',
  command: 'The same from the command line', save: 'Save the settings as a file', copied: (id) => t`These are the settings of ${id}.`,
  resend: 'Its labelled file goes with it.', name: 'Name',
  direction: 'This model reads from left to right: its first token, which stands for a text, sees nothing of it. Choose a model that reads both sides, or a set of tags or answers.',
});
const NUMBERS = [
  ['learning_rate', t`Learning rate`, 'any'], ['epochs', t`Epochs`], ['batch_size', t`Batch size`], ['max_length', t`Longest input`],
  ['layer_decay', t`Layer-wise decay`, 'any'], ['frozen_layers', t`Frozen layers`], ['warmup', t`Warm-up (share)`, 'any'], ['seed', t`Seed`],
];

export function makeTaskForm({ onStarted }) {
  let offer = null;
  let settings = { checkpoints: { keep: 1 } };
  let source = null; // run that the settings, and its labelled file, were copied from
  let copiedTask = null;
  let byHand = false; // whether a person chose the model
  let refused = null; // why the set cannot be learned from
  let denied = null; // why what was clicked was not done: no later check makes that good
  let checked = 0;
  let changes = 0; // of the settings: what was found for others is not shown
  let lost = false; // what the server offers could not be read
  let timer = 0;
  const inputs = new Map();

  const off = element('p', { class: 'problem', role: 'status', hidden: true });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const note = element('p', { class: 'train-note', hidden: true });
  const fail = (error) => {
    const told = denied ?? error;
    problem.hidden = !told;
    problem.textContent = told?.message ?? told ?? '';
  };
  const deny = (error) => { denied = error; fail(null); };
  const language = element('p', { class: 'train-warnings', role: 'status', hidden: true });
  const direction = element('p', { class: 'train-warnings', role: 'status', hidden: true });
  const field = (label, input) => element('label', { class: 'train-field' }, element('span', { text: label }), input);
  const tick = (id, text) => {
    const box = element('input', { type: 'checkbox', id, onchange: () => changed() });
    return { box, root: element('label', { class: 'train-check' }, box, element('span', { text })) };
  };
  const set = makeSet({
    onChange: (byVisitor) => {
      if (byVisitor) { [source, copiedTask, note.hidden] = [null, null, true]; }
      suit();
      showTicks();
      changed();
    },
    onProblem: (text) => { refused = text; fail(text); },
  });
  const from = element('select', { id: 'train-task-from' });
  const name = element('input', { type: 'text', id: 'train-task-name', maxlength: '60', autocomplete: 'off' });
  const scratch = tick('train-task-scratch', TEXT.scratch);
  const apart = tick('train-task-apart', TEXT.apart);
  const mix = tick('train-task-mix', TEXT.mix);
  const summary = element('p', { class: 'train-sum', role: 'status' });
  const time = element('p', { class: 'train-note', role: 'status' });
  const command = code(TEXT.command);
  const before = makeShellNote();
  const batch = makeBatch();
  const button = (text, id, act, kind = 'quiet outlined') => element('button', { type: 'button', class: kind, id, text, onclick: act });
  const start = button(TEXT.start, 'train-task-start', () => tryOut(start, async () => {
    const { id } = await post('runs', form());
    onStarted(id);
  }), 'primary');
  const showBatch = button(TEXT.batch, 'train-task-batch', () => tryOut(showBatch, async (still) => {
    const found = await post('preview', form());
    if (still()) batch.show(found);
  }));
  const measure = button(TEXT.time, 'train-task-time', () => tryOut(measure, async (still) => {
    time.textContent = TEXT.measuring;
    try {
      const found = await post('estimate', form());
      if (!still()) return;
      time.textContent = t`About ${duration(found.seconds)} on this machine as busy as it is now.`;
    } catch (error) { if (still()) time.textContent = ''; throw error; }
  }));
  const numbers = NUMBERS.map(([path, label, step]) => {
    const input = element('input', { type: 'number', id: `train-task-${path.replaceAll('_', '-')}`, step: step ?? '1', inputmode: 'decimal' });
    input.addEventListener('input', () => {
      if (input.value === '') delete settings[path]; else settings[path] = Number(input.value);
      changed();
    });
    inputs.set(path, input);
    return field(label, input);
  });
  const section = (title, ...children) => element('section', {}, element('h4', { text: title }), ...children);
  const root = element('div', { class: 'train-form train-task' },
    element('div', { class: 'card' }, element('h3', { text: TEXT.title }), off, note,
      section(TEXT.set, set.root),
      section(TEXT.model, field(TEXT.from, from), direction, language, apart.root, mix.root),
      section(TEXT.training, element('div', { class: 'train-row' }, ...numbers), scratch.root, field(TEXT.name, name)),
      element('div', { class: 'train-end' }, summary, time, problem,
        element('p', { class: 'train-actions' }, start, showBatch, measure),
        element('details', {}, element('summary', { text: TEXT.command }), command, before.root,
          element('p', { class: 'train-actions' }, copyButton(command), button(TEXT.save, 'train-task-save', () => save()))))),
    batch.root);

  function form() {
    const { apart: _apart, every_step: _mix, ...chosen } = copiedTask ?? set.task();
    const task = { ...chosen, ...(apart.box.checked ? { apart: true } : {}), ...(mix.box.checked ? { every_step: true } : {}) };
    const config = { ...settings, model: { checkpoint: from.value }, task };
    if (name.value.trim()) config.name = name.value.trim();
    if (scratch.box.checked) config.compare_from_scratch = true;
    return { config, texts: copiedTask ? [] : set.texts(), source };
  }

  function showTicks() {
    const facts = set.facts();
    apart.root.hidden = !(facts?.kind === 'regress' && facts.paired);
    mix.root.hidden = facts?.kind !== 'tag';
    // While a set is being read nobody knows yet whether they fit.
    if (facts && apart.root.hidden) apart.box.checked = false;
    if (facts && mix.root.hidden) mix.box.checked = false;
    if (!name.value || name.dataset.auto === name.value) {
      name.value = facts ? t`${(facts.name ?? '').replace(/\.\w+$/, '')} with ${from.value.split('/').at(-1)}`.slice(0, 60) : '';
      name.dataset.auto = name.value;
    }
  }

  function fill() {
    for (const [path, input] of inputs) {
      const about = offer.task.fields[path] ?? {};
      if (document.activeElement !== input) input.value = settings[path] ?? '';
      input.placeholder = about.default ?? '';
      if (about.least !== null && about.least !== undefined) input.min = about.least;
      if (about.most !== null && about.most !== undefined) input.max = about.most;
      input.closest('label').title = message(about.text ?? '');
    }
  }

  function changed() {
    clearTimeout(timer);
    changes += 1;
    denied = null;
    time.textContent = '';
    batch.hide();
    showFitting();
    root.dataset.state = refused ? 'error' : 'checking';
    arm();
    timer = setTimeout(check, 300);
  }

  const busy = new Set(); // clicked and not done: a second click would start a second run

  /** Without a set that can be learned from there is nothing to start. */
  function arm() {
    const able = offer?.enabled && (copiedTask || set.facts());
    for (const control of [start, showBatch, measure]) control.disabled = !able || busy.has(control);
  }

  /** A text's class or score is read from its first token, which sees nothing of it where a model reads from left to right. */
  function fitting(model) {
    const kind = set.facts()?.kind;
    return !model.left_to_right || !kind || ['tag', 'answer'].includes(kind) || (kind === 'regress' && apart.box.checked);
  }

  function showFitting() {
    for (const option of from.options) {
      const model = offer?.models.find(({ name: each }) => each === option.value);
      if (!model) continue;
      option.disabled = !fitting(model);
      option.textContent = option.disabled ? t`${modelTitle(model.title)} – reads from left to right` : modelTitle(model.title);
    }
    const chosen = from.selectedOptions[0];
    direction.hidden = !chosen?.disabled;
    direction.textContent = direction.hidden ? '' : TEXT.direction;
  }

  /** A model of the set's language, unless a person has chosen one; and a word where the languages differ. */
  function suit() {
    const facts = set.facts();
    language.hidden = true;
    if (!facts || !offer) return;
    const wanted = facts.chinese ? 'zh' : 'en';
    const chosen = () => offer.models.find((model) => model.name === from.value);
    if (!byHand) {
      const able = offer.models.filter((model) => model.language === wanted && fitting(model));
      const usual = able.find((model) => offer.task.models.includes(model.name)) ?? able[0];
      if (usual) from.value = usual.name;
    }
    const other = chosen()?.language;
    if (!other || other === wanted) return;
    const short = from.value.split('/').at(-1);
    language.hidden = false;
    language.textContent = wanted === 'zh' ? t`This set is Chinese, and ${short} has hardly read any Chinese: it would have to learn almost from nothing. Choose a Chinese model.`
      : t`This set is not Chinese, and ${short} has read Chinese: it would have to learn almost from nothing. Choose another model.`;
  }

  async function check() {
    checked += 1;
    const mine = checked;
    if (!copiedTask && !set.facts()) { summary.textContent = ''; command.textContent = ''; return; }
    try {
      const found = await post('check', form());
      if (mine !== checked) return;
      const steps = found.estimated ? t`About ${format.count(found.steps)}` : format.count(found.steps);
      summary.textContent = t`${steps} steps over ${format.count(found.rows[0])} rows, with a model of ${many(found.parameters)} parameters (${found.layers} layers of width ${found.width}).`;
      inputs.get('learning_rate').placeholder = found.learning_rate;
      fail(null);
      root.dataset.state = 'ready';
    } catch (error) {
      if (mine !== checked) return;
      summary.textContent = '';
      fail(error);
      root.dataset.state = 'error';
    }
    const called = fileName();
    before.fill(form().config, sentNames());
    command.textContent = `python -m core_models.training ${called}.json --run runs/${called}`;
  }

  const sentNames = () => (copiedTask ? [] : set.names());
  const fileName = () => name.value.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'my-task';

  async function save() {
    const { download } = await import('../../parts/export.js');
    download(`${fileName()}.json`, `${JSON.stringify(forShell(form().config, sentNames()), null, 2)}\n`, 'application/json');
  }

  /** act(still): whether the settings are still those that it was begun with. */
  async function tryOut(control, act) {
    busy.add(control);
    arm();
    deny(null);
    const before = changes;
    const still = () => before === changes;
    try { await act(still); } catch (error) { if (control === start || still()) deny(error); }
    busy.delete(control);
    arm();
  }

  from.addEventListener('change', () => { byHand = true; suit(); showTicks(); changed(); });
  name.addEventListener('input', changed);

  async function refresh() {
    denied = null;
    try {
      const found = await get('form');
      const before = offer && JSON.stringify(form());
      [offer, lost] = [found, false];
      off.hidden = offer.enabled;
      off.textContent = message(offer.off ?? '');
      const kept = from.value;
      from.replaceChildren(...offer.models.map((model) => element('option', { value: model.name, text: modelTitle(model.title) })));
      const [usual] = [...offer.task.models, offer.models[0]?.name].filter((name) => offer.models.some((model) => model.name === name));
      if (byHand && kept) chooseModel(from, kept);
      else from.value = offer.models.some((model) => model.name === kept) ? kept : usual ?? '';
      fill();
      set.build({ ...offer.task, most_bytes: offer.most_bytes });
      suit();
      arm();
      if (!set.facts() && !copiedTask) return;
      if (before === JSON.stringify(form())) { showFitting(); check(); } else changed();
    } catch (error) { lost = true; fail(error); }
  }

  return {
    root,
    refresh,
    deny,
    retry: () => { if (lost) refresh(); },
    async from(model) {
      if (!offer) await refresh();
      chooseModel(from, model);
      byHand = true;
      suit();
      showTicks();
      changed();
    },
    async copy(id, config) {
      try {
        if (!offer) await refresh();
        if (!offer) return;
        const { model, task, name: called, compare_from_scratch: compare, threads, ...rest } = config;
        settings = rest;
        chooseModel(from, model.checkpoint);
        byHand = true;
        scratch.box.checked = Boolean(compare);
        [apart.box.checked, mix.box.checked, name.value] = [Boolean(task.apart), Boolean(task.every_step), called ?? ''];
        [source, copiedTask] = [null, null];
        if (!set.choose(task.set)) {
          [source, copiedTask] = [id, task];
          set.keep(id, t`${task.set.split('/').at(-1)} of ${id}`);
        }
        note.hidden = false;
        note.textContent = sentences(TEXT.copied(id), copiedTask ? TEXT.resend : null);
        fill();
        changed();
      } catch (error) { fail(error); }
    },
  };
}
