window.Cloze.ahead.push(['labs/attention/lab'],
  ...['combined', 'rollout', 'norms', 'off', 'products', 'compare'].map((mode) => [`labs/attention/panel-${mode}`]));

// A file that Python made: {name, type, text}. The view itself shows nothing.
window.Cloze.register('attention-file', (view) => {
  view.root.hidden = true;
  view.onValue(() => document.dispatchEvent(new CustomEvent('cloze:attention-file', { detail: view.value })));
});

// Asks for the other modes; the main view draws the answers (attention-lab.js).
window.Cloze.register('attention-lab', (view) => {
  view.root.hidden = true;
  window.Cloze.attentionLab = view;
});
