// Training: the parts of the lab that have a script of their own (app/labs/train/parts.py).
import { mountBatch } from './batch.js';
import { mountPassages } from './extremes.js';
import { mountUpload } from './files.js';
import { mountScrub } from './scrub.js';
import { mountWatch } from './watch.js';

const KINDS = {
  'view-train': mountWatch, 'view-upload': mountUpload, 'view-batch': mountBatch, 'view-scrub': mountScrub, 'view-passages': mountPassages,
};

export function mount(view) {
  const [, make] = Object.entries(KINDS).find(([name]) => view.root.classList.contains(name));
  make(view);
}
