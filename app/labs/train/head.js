// Training: what the heads of a run and of a race share: the wait in the queue, a silent process, the question before a deletion.
import { duration } from './words.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({ sure: 'Delete it for good?', remove: 'Delete', keep: 'Keep it' });
const LEAST_WAIT = 2; // seconds; what is shorter is over before it is read

/** Where a run stands in the queue and how long that will last, as far as the server can tell. */
export function waiting({ place, wait_seconds: wait }) {
  if (!place) return [];
  return [t`place ${place} in the queue`, wait >= LEAST_WAIT ? t`about ${duration(wait)} until it starts` : null].filter(Boolean);
}

/** How far it is; nothing while it waits for its first step. */
export const progress = ({ step, steps, state }) => steps > 0 && (step > 0 || !['new', 'queued', 'starting'].includes(state));

const quiet = ({ silent_seconds: silent, state }) => (silent > 0 && ['starting', 'running', 'stopping'].includes(state) ? silent : null);

/** On the card of a run. */
export const silentNote = (run) => (quiet(run) ? t`no sign of life for ${duration(quiet(run))}` : null);

/** A hint that the process has not written its heartbeat for long. */
export function makeSilent() {
  const root = element('p', { class: 'train-silent', role: 'status', hidden: true });
  return {
    root,
    fill(run) {
      const seconds = quiet(run);
      root.hidden = !seconds;
      if (seconds) root.textContent = t`The process has given no sign of life for ${duration(seconds)}. It may be busy with one long step, or it hangs. If nothing changes, stop it and continue it: nothing up to the last checkpoint is lost.`;
    },
  };
}

/** The question before a run is deleted. It names the run that it was asked for, and deletes no other one. */
export function makeSure(prefix, remove) {
  let doomed = null;
  const name = element('b');
  const root = element('span', { class: 'train-sure', hidden: true });
  const close = () => { doomed = null; root.hidden = true; };
  const yes = element('button', {
    type: 'button', class: 'quiet outlined', id: `${prefix}-delete-sure`, text: TEXT.remove,
    onclick: () => { const id = doomed; close(); if (id) remove(id); },
  });
  root.append(element('span', {}, name, ` ${TEXT.sure}`), yes,
    element('button', { type: 'button', class: 'quiet outlined', id: `${prefix}-keep`, text: TEXT.keep, onclick: close }));
  return {
    root,
    close,
    ask(id, title) {
      doomed = id;
      name.textContent = `“${title}”`;
      root.hidden = false;
      yes.focus();
    },
  };
}
