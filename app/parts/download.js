// Files and the clipboard.

/** Offer a Blob or a text as a download. */
export function download(name, content, type) {
  // Without this mark spreadsheets read letters beyond ASCII in the code page of their country.
  const mark = type?.startsWith('text/csv') && /[^\0-\x7f]/.test(content) ? '\ufeff' : '';
  const blob = content instanceof Blob ? content : new Blob([mark, content], { type });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Copy a text; pages without a secure connection have no clipboard, so there the element is selected. */
export async function copyText(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return false;
  }
}

/** A cell of a CSV file; one that a spreadsheet would run as a formula gets a quote in front. */
export function cell(value) {
  const text = String(value ?? '');
  const safe = typeof value !== 'number' && /^\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
