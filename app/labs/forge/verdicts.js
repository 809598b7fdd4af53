// A row of tokens, each with a bar of the chance that it was replaced (app/labs/forge/verdicts.py).
import { spoken } from '../../parts/plain.js';

const { direction, element, format, texts } = window.Cloze;
const TEXT = texts({ replaced: 'replaced', spoken: 'probability “replaced”:' });

// Only what rounds to 100.0 % is called 100 %, as in viz/verdicts.py.
const whole = (chance) => `${(chance * 100).toFixed(chance >= 0.995 && chance < 0.9995 ? 1 : 0)}\u00a0%`;

function tokenOf({ position, text, kind, note, chance }, { threshold, picked }, pick) {
  const accused = chance >= threshold;
  const fill = element('span', { class: 'vd-fill' });
  fill.style.height = `${Math.max(chance * 100, 1)}%`;
  const parts = [
    element('bdi', { class: 'vd-word', text }), element('span', { class: 'vd-note', text: note ?? '' }),
    element('span', { class: 'vd-well', 'aria-hidden': 'true' }, fill),
    element('span', { class: 'vd-spoken', text: TEXT.spoken }),
    element('span', { class: 'vd-number', title: format.exact(chance), text: whole(chance) }),
    element('span', { class: 'vd-said', text: accused ? TEXT.replaced : '' }),
  ];
  const shape = { class: `vd-token ${kind}${accused ? ' accused' : ''}`, 'data-chance': chance };
  return element('li', {}, pick && kind !== 'special'
    ? element('button', { ...shape, type: 'button', 'aria-pressed': String(position === picked), onclick: () => pick(position) }, ...parts)
    : element('div', shape, ...parts));
}

export function mount(view) {
  const list = element('ol', { class: 'vd-row' });
  view.root.replaceChildren(list);
  const choice = view.root.classList.contains('view-verdicts-choice');
  let picked = null; // by the visitor
  let about = null; // the text, and what Python offers: with another one the choice is forgotten
  const pick = choice ? (position) => {
    picked = position;
    show();
    view.send('pick', {});
  } : null;
  function show() {
    const { value } = view;
    view.root.hidden = !value?.tokens;
    if (!value?.tokens) return;
    const now = JSON.stringify([value.text, value.cut, value.offered, value.offer]);
    if (now !== about) [picked, about] = [null, now];
    const chosen = picked ?? value.offered ?? null;
    if (chosen !== (value.picked ?? null)) view.value = { ...value, picked: chosen };
    const shown = spoken(view.value);
    const held = [...list.children].findIndex((each) => each.contains(document.activeElement));
    list.setAttribute('aria-label', shown.name);
    list.dir = direction(value.text ?? '');
    list.replaceChildren(...shown.tokens.map((token) => tokenOf(token, shown, pick)));
    if (held >= 0) list.children[held]?.firstChild.focus({ preventScroll: true });
  }
  view.onValue(show);
  show();
}
