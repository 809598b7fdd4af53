window.Cloze.register('finder', (view) => {
  view.root.closest('.block')?.style.setProperty('display', 'none');
  // A link to a model that stands in no list, such as a snapshot: the server knows whether it is there.
  const REVISION = 1; // one question, once
  const send = window.Cloze.asker(view, 'open', () => window.Cloze.missing());
  window.Cloze.findModel = (name) => send({ rev: REVISION, name });
  view.onValue(() => {
    const { rev, error, name, choices } = view.value ?? {};
    if (rev !== REVISION) return;
    if (error) window.Cloze.missing();
    else window.Cloze.found(name, choices);
  });
  if (window.Cloze.wanted) window.Cloze.findModel(window.Cloze.wanted);
});

// A link to a run opens its tab, as soon as Gradio has drawn it.
(() => {
  if (!window.Cloze.place.run) return;
  const open = () => { if (!window.Cloze.openTab('Train')) setTimeout(open, 50); };
  open();
})();
