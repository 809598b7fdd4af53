// Attention: the page's furniture. Static words only; whatever comes from visitors is filled in later as text.

import { fold, labHead } from '../../parts/layout.js';

const { element, icon, t, texts } = window.Cloze;

const TEXT = texts({
  title: 'Which words look at which?',
  lead: 'In every layer, each head lets every token spread 100 % of its attention over all tokens. Pick a head, then point at a word.',
  all: 'All heads',
  grid: 'Layers down, heads across. Arrow keys move, Enter selects.',
  hide: 'Hide [CLS] and [SEP]',
  own: 'Each map on its own colour scale',
  hidden: '[CLS] and [SEP] are left out as rows and as columns. Nothing is re-normalised: the rows that remain add up to less than 100 %.',
  lines: 'Lines from the tokens that look, left, to the tokens looked at, right. Arrow keys move, Enter holds a token, Escape lets go.',
  heat: 'Heat map: rows look at columns. Arrow keys move from cell to cell.',
  others: 'Other heads', previous: 'Previous head', next: 'Next head',
  empty: 'Every token of this sentence is a special one; there is nothing left to show.',
  table: 'The numbers as a table', code: 'The code that recomputes this', copy: 'Copy', save: 'Save',
  lines_svg: 'Lines, SVG', lines_png: 'Lines, PNG', heat_svg: 'Heat map, SVG', heat_png: 'Heat map, PNG', heads_svg: 'All heads, SVG', heads_png: 'All heads, PNG', csv: 'Numbers, CSV',
  modes: 'What to look at',
  second: 'Second sentence', remove: 'Remove the second sentence', add: 'Add a second sentence',
  links: 'Links', segments: 'Segment ids',
});
const MODE = texts({
  heads: 'Heads', combined: 'Combined', rollout: 'Rollout & flow', norms: 'Norms', off: 'Switch off', products: 'q·k', compare: 'Compare',
});
const FILTER = texts({ all: 'all', ab: 'first → second', ba: 'second → first', within: 'inside a sentence' });

const note = (role, properties = {}, text = '') => element('p', { class: 'attn-note', 'data-role': role, text, ...properties });
const button = (action, text) => element('button', { type: 'button', class: 'quiet outlined', 'data-action': action, text });

function tick(left, text, role) {
  return element('span', { style: `left:${left}%`, text, 'data-role': role });
}

function toggle(role, text) {
  return element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', 'data-switch': role },
    element('span', { class: 'track' }), element('span', { text }));
}

/** An empty drawing for createLines. */
export function linesBox() {
  const node = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', TEXT.lines);
  const box = element('div', { class: 'attn-scroll', 'data-role': 'lines' });
  box.append(node);
  return box;
}

/** An empty canvas for createHeat. */
export function heatBox() {
  return element('div', { class: 'attn-map', 'data-role': 'heat' },
    element('canvas', { tabindex: 0, role: 'application', 'aria-label': TEXT.heat }),
    element('div', { class: 'attn-cursor', 'data-role': 'cursor', hidden: true }));
}

function arrow(action, label, path) {
  const properties = { type: 'button', class: 'quiet square outlined', 'data-action': action, 'aria-label': label, title: label };
  return element('button', properties, icon(path));
}

function allHeads() {
  return element('section', { class: 'card attn-card attn-all', 'aria-labelledby': 'attn-all-title' },
    element('h3', { id: 'attn-all-title', text: TEXT.all }),
    note('shape'),
    element('div', { class: 'attn-thumbs', 'data-role': 'overview' },
      element('canvas', { 'aria-hidden': 'true' }),
      element('div', { class: 'attn-cells', 'data-role': 'cells', role: 'grid', 'aria-label': TEXT.grid })),
    element('p', { class: 'attn-words', 'data-role': 'preview' }),
    element('div', { class: 'attn-legend', 'data-role': 'legend' },
      element('div', { class: 'attn-ramp', 'aria-hidden': 'true' }),
      element('div', { class: 'attn-ticks', 'aria-hidden': 'true' },
        tick(0, '0'), tick(20, '4\u00a0%', 'tick'), tick(50, '25\u00a0%', 'tick'), tick(100, '100\u00a0%', 'tick-top')),
      note('scale')),
    element('div', { class: 'attn-switches' }, toggle('hide', TEXT.hide), toggle('own', TEXT.own)),
    note('hidden-note', { hidden: true }, TEXT.hidden));
}

function views() {
  return element('div', { class: 'attn-views', 'data-role': 'views' },
    element('figure', {}, linesBox(), element('figcaption', { class: 'attn-note', 'data-role': 'lines-note' })),
    element('figure', {}, heatBox(),
      element('figcaption', {},
        element('p', { class: 'attn-cell-words', 'data-role': 'cell', 'aria-live': 'polite' }),
        note('heat-note'))));
}

function oneHead() {
  return element('section', { class: 'card attn-card attn-one', 'data-role': 'one', 'aria-labelledby': 'attn-one-title' },
    element('header', {},
      element('h3', { id: 'attn-one-title', 'data-role': 'title' }),
      element('div', { class: 'attn-step', role: 'group', 'aria-label': TEXT.others },
        arrow('previous', TEXT.previous, 'M12 4.5 6.5 10l5.5 5.5'),
        arrow('next', TEXT.next, 'M8 4.5 13.5 10 8 15.5'))),
    element('p', { class: 'attn-words attn-sentence', 'data-role': 'sentence', 'aria-live': 'polite' }),
    note('empty', { hidden: true }, TEXT.empty),
    views(),
    element('details', { class: 'attn-more', 'data-role': 'table-box' },
      element('summary', { text: TEXT.table }),
      element('div', { class: 'attn-table', tabindex: 0, role: 'region', 'aria-label': TEXT.table },
        element('table', { 'data-role': 'table' }))),
    element('details', { class: 'attn-more' },
      element('summary', { text: TEXT.code }),
      element('div', { class: 'attn-code' },
        element('pre', { tabindex: 0 }, element('code', { 'data-role': 'code' })),
        button('copy', TEXT.copy))),
    element('div', { class: 'attn-save', role: 'group', 'aria-label': TEXT.save },
      element('span', { text: TEXT.save }),
      button('svg', TEXT.lines_svg),
      button('png-lines', TEXT.lines_png),
      button('svg-heat', TEXT.heat_svg),
      button('png-heat', TEXT.heat_png),
      button('svg-overview', TEXT.heads_svg),
      button('png-overview', TEXT.heads_png),
      button('csv', TEXT.csv)),
    element('p', { class: 'attn-note attn-status', 'data-role': 'status', role: 'status' }));
}

/** A row of choices of which one is taken; `role` names it for the view. */
export function choices(role, label, names, chosen) {
  return element('div', { class: 'attn-choices', role: 'radiogroup', 'aria-label': label, 'data-role': role },
    ...Object.entries(names).map(([name, text]) => element('button', {
      type: 'button', class: 'quiet outlined', role: 'radio', 'aria-checked': String(name === chosen), 'data-choice': name,
      tabindex: name === chosen ? 0 : -1, text,
    })));
}

/** Let a row of choices be used: by pointer, and by arrow keys as radio buttons are. */
export function useChoices(row, onChoose) {
  const buttons = [...row.querySelectorAll('[data-choice]')];
  const show = (name) => buttons.forEach((each) => {
    each.setAttribute('aria-checked', String(each.dataset.choice === name));
    each.tabIndex = each.dataset.choice === name ? 0 : -1;
  });
  row.addEventListener('click', (event) => {
    const name = event.target.closest('[data-choice]')?.dataset.choice;
    if (name) { show(name); onChoose(name); }
  });
  row.addEventListener('keydown', (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(event.target) + by + buttons.length) % buttons.length];
    next.focus();
    show(next.dataset.choice);
    onChoose(next.dataset.choice);
  });
  return show;
}

function pair() {
  return element('div', { class: 'attn-pair', 'data-role': 'pair' },
    button('add-second', TEXT.add),
    element('div', { class: 'attn-second', 'data-role': 'second-box', hidden: true },
      element('label', { for: 'attn-second', text: TEXT.second }),
      element('input', { id: 'attn-second', type: 'text', maxlength: 1000, autocomplete: 'off', spellcheck: 'false', 'data-role': 'second' }),
      button('remove-second', TEXT.remove)),
    element('div', { class: 'attn-filter', 'data-role': 'filter-box', hidden: true },
      element('span', { text: TEXT.links }), choices('filter', TEXT.links, FILTER, 'all')),
    element('div', { class: 'attn-segments', 'data-role': 'segments-box', hidden: true },
      element('span', { class: 'attn-note', 'data-role': 'segments-note' }),
      element('span', { class: 'attn-segment-row', 'data-role': 'segments' })));
}

export function build(root) {
  root.classList.add('attn');
  root.replaceChildren(
    labHead(TEXT.title),
    element('div', { class: 'attn-top' }, choices('modes', TEXT.modes, MODE, 'heads'), pair()),
    element('p', { class: 'problem', 'data-role': 'error', role: 'alert', hidden: true }),
    element('div', { class: 'attn-body', 'data-role': 'body', 'data-picture': '' }, allHeads(), oneHead(),
      element('section', { class: 'card attn-card attn-lab', 'data-role': 'lab', hidden: true })),
    fold(t`What this shows`, element('p', { class: 'lab-about', text: TEXT.lead, 'data-role': 'lead' })));
}
