// Training: the trained model as a file, with the step that it holds and its size.
import { size } from './words.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({ get: 'Download the model', what: 'A folder for transformers with a model card, packed as zip.' });

export function makeExport() {
  const link = element('a', { class: 'quiet outlined', id: 'train-export', text: TEXT.get, title: TEXT.what, download: '' });
  const note = element('span', { class: 'train-note' });
  const root = element('span', { class: 'train-export', hidden: true }, link, note);
  return {
    root,
    /** offered: {step, bytes} of the model that the server would send, or nothing. */
    fill(id, offered) {
      root.hidden = !offered;
      if (!offered) return;
      const path = `${window.ClozeRoot}train/runs/${encodeURIComponent(id)}/model.zip`;
      if (link.getAttribute('href') !== path) link.setAttribute('href', path);
      note.textContent = t`step ${format.count(offered.step)}, ${size(offered.bytes)}`;
    },
  };
}
