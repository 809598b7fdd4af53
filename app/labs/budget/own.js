// Budget: a size of the visitor's own, and which published ones are shown.
const { element, t, texts } = window.Cloze;
const FIELDS = texts({
  vocabulary: ['Vocabulary, V', 100],
  embedding: ['Width of the tables, E', 8],
  width: ['Hidden width, H', 16],
  layers: ['Layers, L', 1],
  heads: ['Number of heads', 1],
  inner: ['Inner width', 64],
});
const TEXT = texts({
  from: 'Start from', groups: 'Groups', own: 'A size of your own', sharing: 'Sharing of blocks', shown: 'Sizes shown', add: 'Add a published size', more: 'Add a published size …',
});
// A slider of the whole range could not be set with a finger: these are its ends, the field takes more.
const SLIDER = { vocabulary: [1000, 260000], embedding: [32, 2048], width: [64, 2048], layers: [1, 48], heads: [1, 32], inner: [64, 8192] };
const SHARING = [['none', t`none: every layer has weights of its own`], ['all', t`all: one block for every layer`], ['groups', t`groups of layers share a block`]];

function options(catalogue, selected) {
  return catalogue.map(({ family, sizes }) => element('optgroup', { label: family },
    ...sizes.map(({ name }) => element('option', { value: name, text: name, selected: name === selected }))));
}

/** The form of the own size; `changed(values | null)`. */
export function makeOwn(changed) {
  let limits = {};
  let known = new Map();
  const fields = new Map();
  const base = element('select', { id: 'budget-base', 'aria-label': TEXT.from });
  const sharing = element('select', { id: 'budget-sharing' }, ...SHARING.map(([value, text]) => element('option', { value, text })));
  const groups = element('input', { type: 'number', id: 'budget-groups', min: 1, step: 1 });
  const groupsField = element('label', { class: 'budget-field' }, element('span', { text: TEXT.groups }), groups);
  const grid = element('div', { class: 'budget-fields' });
  const toggle = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', id: 'budget-own' },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text: TEXT.own }));
  const body = element('div', { class: 'budget-own-body', hidden: true },
    element('label', { class: 'budget-field wide' }, element('span', { text: TEXT.from }), base),
    grid,
    element('div', { class: 'budget-fields' },
      element('label', { class: 'budget-field' }, element('span', { text: TEXT.sharing }), sharing), groupsField));
  const on = () => toggle.getAttribute('aria-checked') === 'true';

  function values() {
    if (!on()) return null;
    const found = { base: base.value, sharing: sharing.value, groups: Number(groups.value) };
    for (const [name, { number }] of fields) found[name] = Number(number.value);
    return found;
  }
  const tell = () => {
    groupsField.hidden = sharing.value !== 'groups';
    changed(values());
  };

  for (const [name, [label, step]] of Object.entries(FIELDS)) {
    const number = element('input', { type: 'number', id: `budget-${name}`, step: 1 });
    const slider = element('input', { type: 'range', step, 'aria-label': t`${label}, slider` });
    [slider.min, slider.max] = SLIDER[name];
    // The slider stands where the field says, also between two of its steps; it moves in steps.
    if (name === 'vocabulary') slider.step = 'any';
    slider.addEventListener('input', () => { number.value = Math.round(slider.value / step) * step; tell(); });
    number.addEventListener('input', () => { slider.value = number.value; tell(); });
    fields.set(name, { number, slider });
    grid.append(element('div', { class: 'budget-field' },
      element('label', { for: number.id, text: label }),
      element('span', { class: 'budget-pair' }, slider, number)));
  }
  function start() {
    const size = known.get(base.value);
    for (const [name, { number, slider }] of fields) { number.value = size[name]; slider.value = size[name]; }
    sharing.value = size.sharing;
    groups.value = size.sharing === 'groups' ? size.groups : Math.min(2, size.layers);
    tell();
  }
  base.addEventListener('change', start);
  sharing.addEventListener('change', tell);
  groups.addEventListener('input', tell);
  toggle.addEventListener('click', () => {
    toggle.setAttribute('aria-checked', String(!on()));
    body.hidden = !on();
    if (on() && !fields.get('vocabulary').number.value) start(); else tell();
  });
  return {
    root: element('div', { class: 'budget-own' }, toggle, body),
    fill(catalogue, bounds, given = null) {
      limits = bounds;
      known = new Map(catalogue.flatMap(({ sizes }) => sizes).map((size) => [size.name, size]));
      base.replaceChildren(...options(catalogue, 'bert-base-uncased'));
      for (const [name, { number }] of fields) [number.min, number.max] = limits[name];
      [groups.min, groups.max] = limits.groups;
      if (!known.has(given?.base)) return;
      base.value = given.base;
      for (const [name, { number, slider }] of fields) { number.value = given[name]; slider.value = given[name]; }
      sharing.value = given.sharing;
      groups.value = given.groups;
      groupsField.hidden = sharing.value !== 'groups';
      toggle.setAttribute('aria-checked', 'true');
      body.hidden = false;
    },
    off() {
      toggle.setAttribute('aria-checked', 'false');
      body.hidden = true;
    },
  };
}

/** Chips of the chosen sizes and a list to add one from; `changed(names)`. */
export function makeChooser(changed) {
  let names = [];
  let most = 8;
  const chips = element('ul', { class: 'budget-chips', 'aria-label': TEXT.shown });
  const add = element('select', { id: 'budget-add', 'aria-label': TEXT.add });
  const draw = () => {
    chips.replaceChildren(...names.map((name) => element('li', {},
      element('span', { text: name }),
      element('button', {
        type: 'button', class: 'budget-remove', 'aria-label': t`Remove ${name}`, text: '×',
        onclick: () => set(names.filter((other) => other !== name)),
      }))));
    add.disabled = names.length >= most;
  };
  function set(next, quiet = false) {
    names = next;
    draw();
    if (!quiet) changed(names);
  }
  add.addEventListener('change', () => {
    const name = add.value;
    add.value = '';
    if (name && !names.includes(name)) set([...names, name]);
  });
  return {
    root: element('div', { class: 'budget-chooser' }, chips, add),
    set,
    fill(catalogue, limit) {
      most = limit;
      add.replaceChildren(element('option', { value: '', text: TEXT.more }), ...options(catalogue, null));
      draw();
    },
  };
}
