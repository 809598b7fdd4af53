// The little window behind "Share": the address, with or without the controls, and which part of the page it holds.
import { copyText } from '../parts/export.js';

const { element, sentence, t } = window.Cloze;
let panel = null;
let opener = null;

function address(plain) {
  // The address of a first visit is bare, and that of a long text without it.
  const known = (sentence.text || sentence.error) && !window.Cloze.arriving();
  const link = new URL(known ? window.Cloze.address() : location.href, location.href);
  for (const name of ['__theme', 'lesson']) link.searchParams.delete(name); // a lesson would put its own sentence over this one
  if (plain) link.searchParams.set('plain', '1');
  else link.searchParams.delete('plain');
  return link.href;
}

function close() {
  panel?.remove();
  panel = null;
  opener.setAttribute('aria-expanded', 'false');
  document.removeEventListener('keydown', onKey);
  document.removeEventListener('pointerdown', onPress);
}
const onKey = (event) => { if (event.key === 'Escape') { close(); opener.focus(); } };
const onPress = (event) => { if (!panel.contains(event.target) && !opener.contains(event.target)) close(); };

/** Open the window under its button, or close it. */
export function toggle(button) {
  opener = button;
  if (panel) { close(); return; }
  const link = element('input', { type: 'text', readonly: true, class: 'share-link', 'aria-label': t`Link to this view` });
  const plain = element('input', { type: 'checkbox', id: 'share-plain' });
  const copy = element('button', { type: 'button', class: 'primary' });
  const heard = element('span', { class: 'spoken', role: 'status' }); // the focus is on the link then
  const long = element('p', { role: 'status', text: t`This link is long: some programs will cut it.` });
  const draw = () => {
    link.value = address(plain.checked);
    long.hidden = !window.Cloze.tooLong(link.value);
    copy.textContent = t`Copy the link`; // what was copied was another one
    heard.textContent = '';
  };
  plain.addEventListener('change', draw);
  link.addEventListener('focus', () => link.select());
  copy.addEventListener('click', async () => {
    link.focus();
    copy.textContent = await copyText(link.value, link) ? t`Copied` : t`Press Ctrl+C`;
    heard.textContent = copy.textContent;
  });
  panel = element('section', { class: 'view card share-panel', 'aria-label': t`Share` },
    element('p', { text: t`The link holds the sentence, what is hidden, the model, the open lab and its settings. Nothing is stored on the server.` }),
    link, long,
    element('label', { class: 'share-choice' }, plain, element('span', { text: t`Without the controls, for a lesson or a projector` })),
    copy, heard);
  button.closest('header').after(panel);
  button.setAttribute('aria-expanded', 'true');
  draw();
  link.focus();
  document.addEventListener('keydown', onKey);
  document.addEventListener('pointerdown', onPress);
}
