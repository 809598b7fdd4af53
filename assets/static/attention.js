// The Attention tab. Its modules load when the tab is first opened, not with the page.
window.Cloze.register('attention', async (view) => {
  const { mount } = await import('./attention-view.js');
  mount(view);
});

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
