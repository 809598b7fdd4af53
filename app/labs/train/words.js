// Training: how sentences read.
const { language } = window.Cloze;

/** Sentences one after the other; Chinese has no blanks between them. */
export const sentences = (...parts) => parts.filter(Boolean).join(language === 'zh' ? '' : ' ');
