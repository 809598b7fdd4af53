// Attention: files and the clipboard.

/** Offer a Blob or a text as a download. */
export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A canvas as PNG on the colour of its card, so that a picture of the dark page is not black on nothing. */
export function downloadCanvas(name, canvas, background) {
  const copy = document.createElement('canvas');
  const margin = Math.round(canvas.width * 0.03);
  copy.width = canvas.width + 2 * margin;
  copy.height = canvas.height + 2 * margin;
  const context = copy.getContext('2d');
  context.fillStyle = background;
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, margin, margin);
  copy.toBlob((blob) => blob && download(name, blob), 'image/png');
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
