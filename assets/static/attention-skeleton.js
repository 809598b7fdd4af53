// Attention: the page's furniture. Static words only; whatever comes from visitors is filled in later as text.

const { element, icon } = window.Cloze;

const note = (role, properties = {}, text = '') => element('p', { class: 'attn-note', 'data-role': role, text, ...properties });
const button = (action, text) => element('button', { type: 'button', class: 'quiet outlined', 'data-action': action, text });

function tick(left, text, role) {
  return element('span', { style: `left:${left}%`, text, 'data-role': role });
}

function toggle(role, text) {
  return element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', 'data-switch': role },
    element('span', { class: 'track' }), element('span', { text }));
}

function svg(label) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', label);
  return node;
}

function arrow(action, label, path) {
  const properties = { type: 'button', class: 'quiet square outlined', 'data-action': action, 'aria-label': label, title: label };
  return element('button', properties, icon(path));
}

function allHeads() {
  return element('section', { class: 'card attn-card attn-all', 'aria-labelledby': 'attn-all-title' },
    element('h3', { id: 'attn-all-title', text: 'All heads' }),
    note('shape'),
    element('div', { class: 'attn-thumbs', 'data-role': 'overview' },
      element('canvas', { 'aria-hidden': 'true' }),
      element('div', {
        class: 'attn-cells',
        'data-role': 'cells',
        role: 'grid',
        'aria-label': 'Layers down, heads across. Arrow keys move, Enter selects.',
      })),
    element('p', { class: 'attn-words', 'data-role': 'preview' }),
    element('div', { class: 'attn-legend', 'data-role': 'legend' },
      element('div', { class: 'attn-ramp', 'aria-hidden': 'true' }),
      element('div', { class: 'attn-ticks', 'aria-hidden': 'true' },
        tick(0, '0'), tick(20, '4\u00a0%', 'tick'), tick(50, '25\u00a0%', 'tick'), tick(100, '100\u00a0%', 'tick-top')),
      note('scale')),
    element('div', { class: 'attn-switches' },
      toggle('hide', 'Hide [CLS] and [SEP]'),
      toggle('own', 'Each map on its own colour scale')),
    note('hidden-note', { hidden: true },
      '[CLS] and [SEP] are left out as rows and as columns. Nothing is re-normalised: '
        + 'the rows that remain add up to less than 100\u00a0%.'));
}

function views() {
  const lines = element('div', { class: 'attn-scroll', 'data-role': 'lines' });
  lines.append(svg('Lines from the tokens that look, left, to the tokens looked at, right. Arrow keys move, Enter holds a token, Escape lets go.'));
  return element('div', { class: 'attn-views', 'data-role': 'views' },
    element('figure', {}, lines, element('figcaption', { class: 'attn-note', 'data-role': 'lines-note' })),
    element('figure', {},
      element('div', { class: 'attn-map', 'data-role': 'heat' },
        element('canvas', { tabindex: 0, role: 'application', 'aria-label': 'Heat map: rows look at columns. Arrow keys move from cell to cell.' }),
        element('div', { class: 'attn-cursor', 'data-role': 'cursor', hidden: true })),
      element('figcaption', {},
        element('p', { class: 'attn-cell-words', 'data-role': 'cell', 'aria-live': 'polite' }),
        note('heat-note'))));
}

function oneHead() {
  return element('section', { class: 'card attn-card attn-one', 'aria-labelledby': 'attn-one-title' },
    element('header', {},
      element('h3', { id: 'attn-one-title', 'data-role': 'title' }),
      element('div', { class: 'attn-step', role: 'group', 'aria-label': 'Other heads' },
        arrow('previous', 'Previous head', 'M12 4.5 6.5 10l5.5 5.5'),
        arrow('next', 'Next head', 'M8 4.5 13.5 10 8 15.5'))),
    element('p', { class: 'attn-words attn-sentence', 'data-role': 'sentence', 'aria-live': 'polite' }),
    note('empty', { hidden: true }, 'Every token of this sentence is a special one; there is nothing left to show.'),
    views(),
    element('details', { class: 'attn-more', 'data-role': 'table-box' },
      element('summary', { text: 'The numbers as a table' }),
      element('div', { class: 'attn-table', tabindex: 0, role: 'region', 'aria-label': 'The numbers as a table' },
        element('table', { 'data-role': 'table' }))),
    element('details', { class: 'attn-more' },
      element('summary', { text: 'The code that recomputes this' }),
      element('div', { class: 'attn-code' },
        element('pre', { tabindex: 0 }, element('code', { 'data-role': 'code' })),
        button('copy', 'Copy'))),
    element('div', { class: 'attn-save', role: 'group', 'aria-label': 'Save' },
      element('span', { text: 'Save' }),
      button('svg', 'Lines, SVG'),
      button('png-heat', 'Heat map, PNG'),
      button('png-overview', 'All heads, PNG'),
      button('csv', 'Numbers, CSV')),
    element('p', { class: 'attn-note attn-status', 'data-role': 'status', role: 'status' }));
}

export function build(root) {
  root.classList.add('attn');
  root.replaceChildren(
    element('div', { class: 'attn-intro' },
      element('h2', { text: 'Which words look at which?' }),
      element('p', {
        text: 'In every layer, each head lets every token spread 100\u00a0% of its attention over all tokens. '
          + 'Pick a head, then point at a word.',
      })),
    element('p', { class: 'problem', 'data-role': 'error', role: 'alert', hidden: true }),
    element('div', { class: 'attn-body' }, allHeads(), oneHead()));
}
