// Permutation: the chips of the order, and the matrices.
const { element, format, heading, t, texts } = window.Cloze;
const TEXT = texts({
  names: { own: 'Your order', left: 'Left to right', right: 'Right to left', next: 'Next seed', after: 'Seed after', leak: 'Your order, with the leak (wrong)', forgotten: 'Your order, without the memory' },
  step: 'step', position: 'position', wanted: 'to be predicted',
  predict: 'To predict', guesses: 'Its best guesses', leaking: 'Best guesses, with the leak', together: 'Bits, these together', whole: 'Bits, whole sentence',
});

const spoken = (text) => element('span', { class: 'pm-spoken', text });

/**
 * Chips in the order of prediction, moved by dragging or by the arrow keys.
 * draw({order, pieces, targets}) shows an order; changed(order) is called when the visitor has moved one.
 */
export function chips(list, live, changed) {
  let shown = { order: [], pieces: [], targets: new Set() };

  function draw(next, focused = null) {
    shown = next;
    const first = next.order.length - next.targets.size;
    list.replaceChildren(...next.order.map((position, step) => {
      const wanted = next.targets.has(position);
      const name = next.pieces[position].text;
      return element('li', {}, element('button', {
        type: 'button', class: `pm-chip${wanted ? ' target' : ''}${step === first && wanted ? ' first' : ''}`, 'data-position': position,
        'aria-keyshortcuts': 'ArrowLeft ArrowRight Home End',
      },
      spoken(TEXT.step), element('small', { text: `${step + 1}.` }), element('bdi', { text: name }),
      spoken(TEXT.position), element('small', { class: 'pm-at', text: position }), wanted ? spoken(TEXT.wanted) : null));
    }));
    if (focused !== null) list.querySelector(`[data-position="${focused}"]`)?.focus();
  }

  function move(position, to) {
    const order = shown.order.filter((each) => each !== position);
    order.splice(to, 0, position);
    if (order.join() === shown.order.join()) return;
    draw({ ...shown, order }, position);
    live.textContent = t`${shown.pieces[position].text}: step ${to + 1} of ${order.length}`;
    changed(order);
  }

  list.addEventListener('keydown', (event) => {
    const chip = event.target.closest('.pm-chip');
    if (!chip || event.altKey || event.ctrlKey || event.metaKey) return;
    const position = Number(chip.dataset.position);
    const at = shown.order.indexOf(position);
    const last = shown.order.length - 1;
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(position, Math.max(0, Math.min(last, to)));
  });

  let dragged = null;
  list.addEventListener('pointerdown', (event) => {
    const chip = event.target.closest('.pm-chip');
    if (!chip || event.button !== 0) return;
    dragged = { position: Number(chip.dataset.position), pointer: event.pointerId };
    list.setPointerCapture(event.pointerId);
    chip.focus();
  });
  list.addEventListener('pointermove', (event) => {
    if (!dragged || event.pointerId !== dragged.pointer) return;
    list.classList.add('dragging');
    const over = document.elementFromPoint(event.clientX, event.clientY)?.closest('.pm-chip');
    if (!over || !list.contains(over)) return;
    const other = Number(over.dataset.position);
    if (other !== dragged.position) move(dragged.position, shown.order.indexOf(other));
  });
  for (const end of ['pointerup', 'pointercancel']) {
    list.addEventListener(end, () => { dragged = null; list.classList.remove('dragging'); });
  }
  return draw;
}

/**
 * A matrix as a table: a row of cells behind a button that names the row.
 * rows: [{position, cells: [{seen, value, title}]}]; columns: [{label, remembered}]; choose(n) when a row is pointed at.
 */
export function matrix({ title, note, rows, columns, offset, pieces, kind, choose }) {
  const cell = (row) => ({ seen, value, title: text }, n) => {
    const itself = n - offset === row.position;
    const classes = [seen ? 'seen' : '', itself ? 'itself' : '', itself && seen && kind === 'query' ? 'leak' : '', columns[n].remembered ? 'remembered' : ''];
    const node = element('td', { class: classes.filter(Boolean).join(' '), title: text });
    if (value !== undefined) node.style.setProperty('--weight', `${Math.round(Math.sqrt(value) * 100)}%`);
    return node;
  };
  const lines = rows.map((row, n) => element('tr', { 'data-row': n, 'data-position': row.position },
    element('th', { scope: 'row' }, element('button', { type: 'button', class: 'pm-name' },
      element('small', { text: row.position }), element('bdi', { text: pieces[row.position].text }))),
    ...row.cells.map(cell(row))));
  const head = element('tr', {}, element('td'), ...columns.map(({ label, remembered }, n) => element('th', {
    scope: 'col', class: remembered ? 'remembered' : '',
  }, heading(label, ...(remembered ? [] : [element('small', { text: ` ${n - offset}` })])))));
  const table = element('table', { class: `pm-matrix ${kind}${rows[0]?.cells[0]?.value === undefined ? '' : ' weights'}` },
    element('thead', {}, head), element('tbody', {}, ...lines));
  if (choose) {
    for (const event of ['pointerover', 'focusin', 'click']) {
      table.addEventListener(event, ({ target }) => {
        const line = target.closest('tr[data-row]');
        if (line) choose(Number(line.dataset.row), table);
      });
    }
  }
  return element('figure', { class: 'pm-figure' },
    element('figcaption', {}, element('b', { text: title }), element('span', { text: note })),
    element('div', { class: 'pm-scroll', tabindex: '0', role: 'region', 'aria-label': `${title}: ${note}` }, table));
}

/** Mark the row that is being read. */
export function mark(table, row) {
  for (const line of table.querySelectorAll('tr.read')) line.classList.remove('read');
  table.querySelector(`tr[data-row="${row}"]`)?.classList.add('read');
}

function chance(value, kind = '') {
  const fill = element('span', { class: 'pm-fill' });
  fill.style.width = `${value * 100}%`;
  return element('td', { class: kind, title: format.exact(value), 'data-chance': value },
    element('span', { text: format.percent(value) }), element('span', { class: 'pm-bar', 'aria-hidden': 'true' }, fill));
}

/** Probability of every target under every order, with the bits of all of them below. */
export function chances(answer, pieces) {
  const leaking = answer.rows.some((row) => row.leak !== null);
  const names = answer.orders.map(({ name }) => name);
  const extra = [...(leaking ? ['leak'] : []), ...(answer.rows[0].forgotten === null ? [] : ['forgotten'])];
  const heads = ['own', ...extra, ...names.filter((name) => name !== 'own')];
  const value = (row, name) => (extra.includes(name) ? row[name] : row.chances[name]);
  const foot = (text, bits) => element('tr', {}, element('th', { scope: 'row', text }),
    ...heads.map((name) => element('td', { text: bits[name] === undefined ? '–' : bits[name].toFixed(1) })), element('td', { text: '' }));
  return element('table', { class: 'pm-chances' },
    element('thead', {}, element('tr', {}, ...[TEXT.predict, ...heads.map((name) => TEXT.names[name]), leaking ? TEXT.leaking : TEXT.guesses].map((text, n) => element('th', {
      scope: 'col', text, class: heads[n - 1] === 'leak' ? 'leak' : '',
    })))),
    element('tbody', {}, ...answer.rows.map((row) => element('tr', { 'data-position': row.position },
      element('th', { scope: 'row' }, element('bdi', { text: pieces[row.position].text }), element('small', { text: ` ${row.position}` })),
      ...heads.map((name) => chance(value(row, name), name)),
      element('td', { class: 'pm-guesses' }, ...row.guesses.map((guess) => element('span', { title: format.exact(guess.chance) },
        element('bdi', { text: guess.text }), element('small', { text: format.percent(guess.chance) }))))))),
    element('tfoot', {}, foot(TEXT.together, answer.bits), answer.whole ? foot(TEXT.whole, answer.whole) : null));
}
