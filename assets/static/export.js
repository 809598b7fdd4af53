// Files and pictures that every view offers.
export { copyText, download } from './attention-export.js';
import { download } from './attention-export.js';

const SCALE = 2; // pixels of the file for each unit of the drawing

/** A drawing (SVG as text, with width and height or a viewBox) as a PNG file; rejects where the browser cannot draw it. */
export async function downloadPicture(name, svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = document.createElement('canvas');
    canvas.width = picture.naturalWidth * SCALE;
    canvas.height = picture.naturalHeight * SCALE;
    const context = canvas.getContext('2d');
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => { canvas.toBlob(done, 'image/png'); });
    download(name, blob);
  } finally {
    URL.revokeObjectURL(address);
  }
}
