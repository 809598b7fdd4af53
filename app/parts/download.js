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

/** Copy a text; false where the browser lets nobody: the element that holds it is selected then. */
export async function copyText(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without a secure connection, such as one in a classroom's network, has no such clipboard.
    const before = document.activeElement;
    const box = document.createElement('textarea');
    box.value = text;
    box.style.cssText = 'position: fixed; opacity: 0';
    document.body.append(box);
    box.select();
    const copied = document.execCommand('copy');
    box.remove();
    before?.focus({ preventScroll: true });
    if (copied) return true;
    if (element.select) element.select();
    else getSelection().selectAllChildren(element);
    return false;
  }
}

/** What a spreadsheet takes for text: what it would run as a formula gets a quote in front. */
export function safe(value) {
  const text = String(value ?? '');
  return typeof value !== 'number' && /^\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
}

/** A cell of a CSV file. */
export function cell(value) {
  const text = safe(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
