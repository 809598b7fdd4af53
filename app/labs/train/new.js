// Training: what a new run is to be. One switch, three forms.
import { makeForm } from './form.js';
import { makeRaceForm } from './race-form.js';
import { makeTaskForm } from './task.js';
import { get } from './api.js';

const { element, t } = window.Cloze;
const STYLE = '/cloze/app/labs/train/forms.css';
if (!document.querySelector(`link[href="${STYLE}"]`)) document.head.append(element('link', { rel: 'stylesheet', href: STYLE }));

const KINDS = [
  ['pretraining', t`Pretrain`, t`A model learns a language from plain text.`],
  ['task', t`Fine-tune`, t`A pretrained model learns a task from labelled examples.`],
  ['race', t`Race`, t`Several ways of learning, the same text and budget.`],
];

/** kind: the form to begin with; onKind(kind) is told which one is shown. */
export function makeNew({ onStarted, kind: first, onKind }) {
  const forms = {
    pretraining: makeForm({ onStarted }), task: makeTaskForm({ onStarted }), race: makeRaceForm({ onStarted }),
  };
  let turn = 0; // of what the visitor asked for last
  let kind = KINDS.some(([name]) => name === first) ? first : 'pretraining';
  const host = element('div');
  const buttons = new Map(KINDS.map(([name, title, text]) => [name, element('button', {
    type: 'button', class: 'train-kind', id: `train-kind-${name}`, 'aria-pressed': 'false', onclick: () => { turn += 1; show(name); },
  }, element('b', { text: title }), element('span', { text }))]));
  const root = element('div', { class: 'train-new' },
    element('div', { class: 'train-kinds', role: 'group', 'aria-label': t`Kind of run` }, ...buttons.values()), host);

  function show(name) {
    kind = name;
    onKind(kind);
    for (const [each, button] of buttons) button.setAttribute('aria-pressed', String(each === kind));
    host.replaceChildren(forms[kind].root);
    forms[kind].refresh();
  }

  return {
    root,
    refresh: () => { turn += 1; show(kind); },
    /** Ask once more for what the form could not get. */
    retry: () => forms[kind].retry(),
    /** Fine-tune a model, as chosen elsewhere. */
    tune(model) { show('task'); forms.task.from(model); },
    async copy(id) {
      turn += 1;
      const mine = turn;
      let config;
      try { config = await get(`runs/${id}/config`); } catch (error) {
        if (mine === turn) forms[kind].deny(error); // of which kind it is nobody knows
        return;
      }
      if (mine !== turn) return;
      show('entrants' in config ? 'race' : 'task' in config ? 'task' : 'pretraining');
      await forms[kind].copy(id, config);
    },
  };
}
