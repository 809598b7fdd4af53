// Why: a chooser, a slider and the line that shows how far a computation is.
const { element, t } = window.Cloze;

export const chooser = (id, label, table, pick) => {
  const select = element('select', { id, class: 'wy-select', onchange: () => pick(select.value) },
    ...Object.entries(table).map(([value, text]) => element('option', { value, text })));
  return { select, root: element('label', { class: 'wy-field', for: id }, label, select) };
};

export const slider = (id, label, [min, max, step], pick) => {
  const input = element('input', { type: 'range', id, min, max, step });
  const shown = element('output', { class: 'wy-mono', for: id });
  const show = (value) => { input.value = value; shown.textContent = value; };
  input.addEventListener('input', () => { shown.textContent = input.value; });
  input.addEventListener('change', () => pick(Number(input.value)));
  return { show, root: element('label', { class: 'wy-field', for: id }, label, input, shown) };
};

export const working = (id, cancel) => {
  const bar = element('progress', { max: '1', value: '0', 'aria-label': t`Share done` });
  const said = element('span', { class: 'wy-small wy-mono' });
  const root = element('div', { class: 'wy-row wy-working', id, hidden: true }, bar, said,
    element('button', { type: 'button', class: 'quiet outlined', text: t`Cancel`, onclick: cancel }));
  const show = ({ share, ahead }) => {
    root.hidden = false;
    bar.value = share;
    said.textContent = ahead ? t`${ahead} before you` : `${Math.round(share * 100)}\u00a0%`;
  };
  return { root, show, hide: () => { root.hidden = true; } };
};
