// Training: areas that scroll. The keyboard reaches them, so each has a name.
const { element } = window.Cloze;

export const scroll = (label, ...children) => element('div', {
  class: 'train-scroll', tabindex: '0', role: 'region', 'aria-label': label,
}, ...children);

export const code = (label, extra = '') => element('pre', {
  class: `code ${extra}`.trim(), tabindex: '0', role: 'region', 'aria-label': label,
});
