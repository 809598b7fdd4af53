// Permutation: what a row of a mask says, as a sentence.
const { t, language } = window.Cloze;
const list = new Intl.ListFormat(language === 'zh' ? 'zh' : 'en-GB', { type: 'conjunction' });

const seenBy = (row) => [...row.seen].flatMap((flag, n) => (flag === '1' && n !== row.position ? [n] : []));
const listed = (positions, pieces) => list.format(positions.map((n) => `${n} “${pieces[n].text}”`));

/** A row of the query mask: which pieces the question for a position may see. */
export function querySentence(row, { pieces, remembered }) {
  const at = row.position;
  const others = seenBy(row);
  if (row.seen[at] === '1') return t`To predict position ${at}, the query sees ${at} “${pieces[at].text}” itself. That is wrong: the answer stands in the question.`;
  if (!others.length) {
    return remembered
      ? t`To predict position ${at}, the query may see nothing of this text but where it stands, and the ${remembered} remembered pieces before the text.`
      : t`To predict position ${at}, the query may see nothing of this text: it knows only where it stands.`;
  }
  if (others.length === pieces.length - 1) {
    return remembered
      ? t`To predict position ${at}, the query may see every other piece, and the ${remembered} remembered pieces before the text.`
      : t`To predict position ${at}, the query may see every other piece.`;
  }
  const shown = listed(others, pieces);
  return remembered
    ? t`To predict position ${at}, the query may see only ${shown}, and the ${remembered} remembered pieces before the text.`
    : t`To predict position ${at}, the query may see only ${shown}.`;
}

/** A row of the content mask: what a piece that is known may see. */
export function contentSentence(row, { pieces, remembered }) {
  const at = row.position;
  const name = pieces[at].text;
  const others = seenBy(row);
  if (!others.length) {
    return remembered
      ? t`The content of position ${at} “${name}” sees itself, and the ${remembered} remembered pieces before the text.`
      : t`The content of position ${at} “${name}” sees itself.`;
  }
  if (others.length === pieces.length - 1) {
    return remembered
      ? t`The content of position ${at} “${name}” sees every piece, and the ${remembered} remembered pieces before the text.`
      : t`The content of position ${at} “${name}” sees every piece.`;
  }
  const shown = listed(others, pieces);
  return remembered
    ? t`The content of position ${at} “${name}” sees itself and ${shown}, and the ${remembered} remembered pieces before the text.`
    : t`The content of position ${at} “${name}” sees itself and ${shown}.`;
}
