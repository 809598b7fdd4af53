// Training: a field for files, which go to the server at once, and a list of what it made of them (app/labs/train/parts.py).
import { sendLabelled, sendText } from './api.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({ sending: 'On its way …', remove: 'Remove', there: 'What was sent', without: 'Go on without it' });
const MB = 1 << 20;
const MOST = 20 * MB; // whatever a server allows below says itself
const TABLES = '.csv,.tsv,.jsonl,.parquet';

export function mountUpload(view) {
  const { label, labelled, several } = view.value;
  let sent = view.value.sent ?? []; // drawn anew, it holds what it held
  let sending = 0;
  let reading = false; // the server reads a text from elsewhere
  let turn = 0; // of the last file: where one takes the place of another, one that comes late takes none
  const file = element('input', { type: 'file', multiple: several, accept: labelled ? TABLES : `.txt,${TABLES},text/plain` });
  const status = element('p', { class: 'note', role: 'status' });
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const list = element('ul', { class: 'files', 'aria-label': TEXT.there });

  function tell() {
    status.textContent = sending || reading ? TEXT.sending : '';
    list.replaceChildren(...sent.map((each) => element('li', {}, element('bdi', { text: each.name }), element('button', {
      type: 'button', class: 'quiet', text: TEXT.remove, 'aria-label': t`Remove ${each.name}`,
      onclick: () => { sent = sent.filter((other) => other !== each); tell(); file.focus({ preventScroll: true }); },
    }))));
    view.value = { label, labelled, several, sent, sending: sending + reading, refused: problem.hidden ? null : problem.textContent };
  }
  const without = element('button', { type: 'button', class: 'quiet', text: TEXT.without, hidden: true, onclick: () => { refuse(null); tell(); file.focus({ preventScroll: true }); } });
  const refuse = (text) => { [problem.hidden, problem.textContent, without.hidden] = [!text, text ?? '', !text || several]; };
  view.root.replaceChildren(element('label', {}, element('span', { text: texts(label) }), file), status, problem, without, list);
  const refuseToo = (text) => refuse([problem.textContent, text].filter(Boolean).join(' '));
  const add = (each) => { sent = [...(several ? sent.filter(({ id, pasted }) => id !== each.id && !(pasted && each.pasted)) : []), each]; };

  file.addEventListener('change', () => {
    const chosen = [...file.files];
    file.value = '';
    refuse(null);
    chosen.forEach(send);
  });
  async function send(chosen) {
    if (chosen.size > MOST) {
      refuseToo(t`${chosen.name} has ${(chosen.size / MB).toFixed(1)} MB; at most ${MOST / MB} MB are taken. Send a part of it.`);
      tell();
      return;
    }
    turn += 1;
    const mine = turn;
    sending += 1;
    if (!several) sent = [];
    tell();
    try {
      const each = await (labelled ? sendLabelled : sendText)(chosen.name, chosen);
      if (several || mine === turn) add(each);
    } catch (error) {
      const told = error.message.includes(chosen.name) ? error.message : `${chosen.name}: ${error.message}`;
      if (several || mine === turn) refuseToo(told);
    }
    sending -= 1;
    tell();
  }

  view.onValue(() => {
    const { add: more, clear, drop, reads } = view.value ?? {};
    if (typeof reads === 'boolean') { // the server reads a text from elsewhere, or has read it
      if (reads === reading) return;
      reading = reads;
      if (reads) refuse(null);
      tell();
      return;
    }
    if (!more && !clear && !drop) return;
    if (clear) { turn += 1; sent = []; }
    if (drop) sent = sent.filter(({ pasted }) => !pasted);
    refuse(null);
    if (more) add(more);
    tell();
  });
  if (sent.length) tell();
}
