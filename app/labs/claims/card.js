// A statement, its verdict and what explains it (app/labs/claims/card.py).
import { spoken } from '../../parts/plain.js';

const { element, message, t } = window.Cloze;

function cardOf({ family, statement, articles, said, verdict, stamp, guess, note, lines, small = [] }) {
  const who = [...articles, said && message(said)].filter(Boolean).join(' · ');
  return element('article', { class: `claim ${verdict ?? ''}`, tabindex: '-1' },
    element('p', { class: 'claim-who' }, element('b', { text: family }), ' ', element('span', { text: who ? t`said in: ${who}` : t`often heard` })),
    element('h3', { text: message(statement) }),
    element('p', { class: 'claim-verdict', role: 'status' },
      stamp ? element('b', { text: stamp.join(' ') }) : null, ' ', guess ? element('span', { text: guess }) : null),
    note ? element('p', { class: 'claim-note' }, element('b', { text: note[0] }), ' ', element('span', { text: message(note[1]) })) : null,
    ...lines.map(([term, text]) => element('p', {}, element('b', { text: term }), ' ', element('span', { text: message(text) }))),
    small.length ? element('p', { text: small.join(' · ') }) : null);
}

export function mount(view) {
  let last = null; // what had the focus: a guess can be made once, and the keyboard goes on at its verdict
  view.root.closest('[role=tabpanel]').addEventListener('focusin', ({ target }) => { last = target; });
  const goOn = () => {
    if (last?.disabled && [last, document.body].includes(document.activeElement)) view.root.firstChild.focus({ preventScroll: true });
  };
  const show = () => {
    if (!view.value?.statement) return;
    view.root.replaceChildren(cardOf(spoken(view.value)));
    requestAnimationFrame(goOn);
  };
  view.onValue(show);
  show();
}
