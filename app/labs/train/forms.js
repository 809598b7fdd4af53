// Training: the parts of the forms that have a script of their own (app/labs/train/parts.py).
import { mountBatch } from './batch.js';
import { mountUpload } from './files.js';

export const mount = (view) => (view.root.classList.contains('view-upload') ? mountUpload : mountBatch)(view);
