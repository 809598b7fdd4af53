// The part `OrderGrid` of grid.py: pieces in the order of their prediction, and which of them each stream may see.
import { csvButton } from '../../parts/plain.js';

const { apart, element, listed, t, texts } = window.Cloze;
const TEXT = texts({
  order: 'Order of prediction', step: 'step', position: 'position', wanted: 'to be predicted', seen: 'seen', itself: 'itself', leak: 'sees itself',
  query: 'Query stream', asks: 'asks for the framed pieces', content: 'Content stream', gives: 'gives keys and values to both',
});
const LEAST_HEADING = 14; // pixels between two headings: fewer would print one over the other

const spoken = (text) => element('span', { class: 'spoken', text });

/** A row of a grid as a sentence. */
function told(kind, { position: at, seen }, { pieces, remembered }) {
  const others = [...seen].flatMap((flag, n) => (flag === '1' && n !== at ? [n] : []));
  const shown = listed(others.map((n) => `${n} “${apart(pieces[n])}”`));
  const all = others.length === pieces.length - 1;
  let said;
  if (kind === 'content') {
    if (all) said = t`The content of position ${at} “${pieces[at]}” sees every piece.`;
    else said = shown ? t`The content of position ${at} “${pieces[at]}” sees itself and ${shown}.` : t`The content of position ${at} “${pieces[at]}” sees itself.`;
  } else if (seen[at] === '1') return t`To predict position ${at}, the query sees ${at} “${pieces[at]}” itself. That is wrong: the answer stands in the question.`;
  else if (all) said = t`To predict position ${at}, the query may see every other piece.`;
  else said = shown ? t`To predict position ${at}, the query may see only ${shown}.` : t`To predict position ${at}, the query may see nothing of this text: it knows only where it stands.`;
  return remembered ? t`${said} Remembered pieces before the text, which all see: ${remembered}.` : said;
}

/** One stream as a table: rows see columns. */
function makeGrid(kind, title, note, { [kind]: rows, pieces }, read) {
  const cell = (at) => (flag, n) => {
    const [seen, itself] = [flag === '1', n === at];
    const leak = seen && itself && kind === 'query';
    return element('td', {
      class: [seen && 'seen', itself && 'itself', leak && 'leak'].filter(Boolean).join(' '),
      'aria-label': leak ? TEXT.leak : seen ? TEXT.seen : itself ? TEXT.itself : undefined,
    });
  };
  const table = element('table', { 'aria-label': title },
    element('thead', {}, element('tr', {}, element('td'),
      ...pieces.map((text, n) => element('th', { scope: 'col' }, element('span', {}, element('bdi', { text }), element('small', { text: ` ${n}` })))))),
    element('tbody', {}, ...rows.map(({ position, seen }, n) => element('tr', { 'data-row': n },
      element('th', { scope: 'row' }, element('button', { type: 'button' }, element('small', { text: position }), element('bdi', { text: pieces[position] }))),
      ...[...seen].map(cell(position))))));
  table.style.setProperty('--count', pieces.length);
  for (const event of ['pointerover', 'focusin', 'click']) {
    table.addEventListener(event, ({ target }) => {
      const line = target.closest('[data-row]');
      if (line) read(kind, Number(line.dataset.row));
    });
  }
  return element('figure', { class: kind }, element('figcaption', {}, element('b', { text: title }), element('span', { text: note })), table);
}

export function mount(view) {
  const list = element('ol', { 'aria-label': TEXT.order });
  const live = element('p', { class: 'spoken', role: 'status' });
  const said = element('p', { class: 'summary', role: 'status' });
  const grids = element('div', { class: 'grids' });
  let shown = null;
  let wish = null; // the order that is on its way

  function read(kind, row) {
    for (const line of grids.querySelectorAll('tr.read')) line.classList.remove('read');
    grids.querySelector(`.${kind} [data-row="${row}"]`)?.classList.add('read');
    said.textContent = told(kind, shown[kind][row], shown);
    said.classList.toggle('wrong', Boolean(grids.querySelector('.read .leak')));
  }

  function chips(order) {
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.position : null;
    const wanted = new Set(shown.targets);
    list.replaceChildren(...order.map((position, step) => element('li', {}, element('button', {
      type: 'button', class: wanted.has(position) ? 'target' : undefined, 'data-position': position, 'aria-keyshortcuts': 'ArrowLeft ArrowRight Home End',
    },
    spoken(TEXT.step), element('small', { text: `${step + 1}.` }), element('bdi', { text: shown.pieces[position] }),
    spoken(TEXT.position), element('small', { text: position }), wanted.has(position) ? spoken(TEXT.wanted) : null))));
    if (focused !== null) list.querySelector(`[data-position="${focused}"]`)?.focus();
  }

  const now = () => wish ?? shown.order;
  function move(position, to) {
    const order = now().filter((each) => each !== position);
    order.splice(to, 0, position);
    if (order.join() === now().join()) return;
    wish = order;
    chips(order);
    live.textContent = t`${shown.pieces[position]}: step ${to + 1} of ${order.length}`;
    view.value = { ...view.value, wish };
    view.send('move', {});
  }

  list.addEventListener('keydown', (event) => {
    const chip = event.target.closest('button');
    if (!chip || event.altKey || event.ctrlKey || event.metaKey) return;
    const position = Number(chip.dataset.position);
    const [at, last] = [now().indexOf(position), now().length - 1];
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(position, Math.max(0, Math.min(last, to)));
    list.querySelector(`[data-position="${position}"]`).focus();
  });

  let dragged = null;
  list.addEventListener('pointerdown', (event) => {
    const chip = event.target.closest('button');
    if (!chip || event.button !== 0) return;
    dragged = { position: Number(chip.dataset.position), pointer: event.pointerId };
    list.setPointerCapture(event.pointerId);
    chip.focus();
  });
  list.addEventListener('pointermove', (event) => {
    if (!dragged || event.pointerId !== dragged.pointer) return;
    const over = document.elementFromPoint(event.clientX, event.clientY)?.closest('button');
    const other = Number(over?.dataset.position);
    if (list.contains(over) && other !== dragged.position) move(dragged.position, now().indexOf(other));
  });
  for (const end of ['pointerup', 'pointercancel']) list.addEventListener(end, () => { dragged = null; });

  // Of columns that are narrower than a heading only some are named.
  const fit = () => {
    for (const table of grids.querySelectorAll('table')) {
      const every = Math.ceil(LEAST_HEADING / Math.max(1, table.querySelector('tbody td').offsetWidth));
      table.querySelectorAll('thead th').forEach((each, n) => each.classList.toggle('unnamed', n % every > 0));
    }
  };
  new ResizeObserver(fit).observe(grids);

  const rows = () => ['content', 'query'].flatMap((kind) => shown[kind].map(({ position, seen }) => (
    [kind, position, shown.pieces[position], [...seen].flatMap((flag, n) => (flag === '1' ? [n] : [])).join(' ')])));
  const save = csvButton(view.root.dataset.files, () => ({ columns: ['stream', 'position', 'piece', 'sees'], rows: rows() }));
  view.root.replaceChildren(list, live, said, grids, save);

  function show() {
    const next = view.value;
    view.root.hidden = !next?.pieces;
    // What is answered to an order before the last one would move the chips back.
    if (view.root.hidden || next.wish || (wish && next.own && next.text === shown.text && next.order.join() !== wish.join())) return;
    [shown, wish] = [next, null];
    chips(shown.order);
    grids.replaceChildren(
      makeGrid('query', TEXT.query, `${TEXT.asks}: ${t`${shown.targets.length} of ${shown.order.length}`}`, shown, read),
      makeGrid('content', TEXT.content, TEXT.gives, shown, read));
    fit();
    read('query', 0);
  }
  view.onValue(show);
  show();
}
