// Training: texts that are not sent: a data set by its name, a folder of the machine that the server runs on.
import { post } from './api.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Read from elsewhere', dataset: 'Name of a data set', split: 'Split', configuration: 'Configuration', folder: 'Folder on this machine',
  read: 'Read it', reading: 'Reading it …', none: 'if it has several',
  names: 'A public name of the `datasets` library. Its beginning, up to the size of a file that may be sent, is fetched over the network and kept.',
});

/** onText(text) gets what was read, as a text that was sent; onProblem(error or null). */
export function makeSources({ prefix, onText, onProblem }) {
  const input = (id, options = {}) => element('input', { type: 'text', id: `${prefix}-${id}`, maxlength: '300', autocomplete: 'off', spellcheck: 'false', ...options });
  const field = (label, control) => element('label', { class: 'train-field' }, element('span', { text: label }), control);
  const dataset = input('dataset', { placeholder: 'owner/name' });
  const configuration = input('configuration', { placeholder: TEXT.none });
  const split = input('split', { placeholder: 'train' });
  const folder = input('folder');
  const status = element('p', { class: 'train-note', role: 'status' });
  const button = (id, ask) => element('button', { type: 'button', class: 'quiet outlined', id: `${prefix}-${id}`, text: TEXT.read, onclick: (event) => read(event.currentTarget, ask()) });
  const byName = element('div', { class: 'train-source' },
    element('div', { class: 'train-row' }, field(TEXT.dataset, dataset), field(TEXT.configuration, configuration), field(TEXT.split, split)),
    element('p', { class: 'train-note', text: TEXT.names }),
    button('dataset-read', () => ({ dataset: dataset.value.trim(), configuration: configuration.value.trim(), split: split.value.trim() })));
  const hint = element('p', { class: 'train-note' });
  const byFolder = element('div', { class: 'train-source' }, field(TEXT.folder, folder), hint, button('folder-read', () => ({ folder: folder.value.trim() })));
  const root = element('details', { class: 'train-elsewhere', hidden: true }, element('summary', { text: TEXT.title }), byName, byFolder, status);

  async function read(control, task) {
    control.disabled = true;
    onProblem(null);
    status.textContent = TEXT.reading;
    try { onText(await post('look', { task })); } catch (error) { onProblem(error); }
    status.textContent = '';
    control.disabled = false;
  }

  return {
    root,
    build(offered) {
      byName.hidden = !offered?.datasets;
      byFolder.hidden = !offered?.folders?.length;
      root.hidden = byName.hidden && byFolder.hidden;
      hint.textContent = byFolder.hidden ? '' : t`A folder in ${offered.folders.join(', ')}: its texts and tables are read in order of name.`;
    },
  };
}
