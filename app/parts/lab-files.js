// Files of a lab: buttons that ask Python for a file and save the answer.
import { copyText, downloadFile } from './export.js';

const { element, texts, message } = window.Cloze;
const TEXT = texts({
  svg: 'Save as SVG', png: 'Save as PNG', csv: 'Save as CSV', code: 'The code that recomputes this',
  copy: 'Copy', copied: 'Copied', press: 'Press Ctrl+C', broken: 'This browser cannot draw the picture; save it as SVG.',
});

/** Buttons SVG, PNG and CSV: `send(event, what)` asks for "svg" or "csv" and returns its rev; `tell(text)` shows what went wrong. */
export function makeSaver(send, tell, kinds = ['svg', 'png', 'csv']) {
  const asked = new Map(); // rev -> kind of file
  const ask = (what) => asked.set(send(what === 'png' ? 'svg' : what), what);
  return {
    buttons: kinds.map((what) => element('button', {
      type: 'button', class: 'quiet outlined', 'data-save': what, text: TEXT[what], onclick: () => ask(what),
    })),
    /** Whether the answer is one of these files; then it is saved, or its error told. */
    take(answer) {
      const what = asked.get(answer.rev);
      if (!what) return false;
      asked.delete(answer.rev);
      if (answer.error) tell(message(answer.error));
      else downloadFile(answer, what === 'png').catch(() => tell(TEXT.broken));
      return true;
    },
  };
}

/** The lines of Python under a view, with a button that copies them. */
export function makeCode() {
  const code = element('pre', { class: 'code', tabindex: '0', role: 'region', 'aria-label': TEXT.code });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: TEXT.copy });
  copy.addEventListener('click', async () => {
    copy.textContent = await copyText(code.textContent, code) ? TEXT.copied : TEXT.press;
    setTimeout(() => { copy.textContent = TEXT.copy; }, 2000);
  });
  return {
    root: element('details', {}, element('summary', { text: TEXT.code }), code, copy),
    show: (text) => { code.textContent = text; },
  };
}

/** A whole number from an address between two bounds, or what stands for anything else. */
export const wholeOr = (value, least, most, otherwise) => (
  Number.isInteger(value) && value >= least && value <= most ? value : otherwise);
