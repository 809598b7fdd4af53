// How labs are laid out: what is asked in one row, the picture, and folds for all else.
const { element, t } = window.Cloze;

/** The heading of a lab with what to try beside it. */
export const labHead = (title, ...beside) => element('header', { class: 'lab-head' }, element('h2', { text: title }), ...beside);

/** A part below the picture that is unfolded by its title. */
export const fold = (title, ...children) => namedFold(undefined, title, ...children);

/** The same with an id. */
export const namedFold = (id, title, ...children) => element('details', { class: 'card fold', id },
  element('summary', {}, element('h3', { text: title })), ...children);

/** What a lab is about, for who wants to read it. */
export const about = (...texts) => fold(t`What this shows`, ...texts.map((text) => element('p', { class: 'lab-about', text })));
