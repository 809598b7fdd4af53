// The fold that opens a model of the hub or a folder: how far it has come, and its way into the list (open_model.py).
(() => {
  'use strict';
  const { change, element, register, modelTitle, openFold, sentence, t } = window.Cloze;
  const HIDDEN = { __type__: 'update', visible: false };
  const millions = (bytes) => (bytes / 1e6).toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const list = () => window.gradio_config.components.find(({ props }) => props?.elem_id === 'sentence-model').props;

  register('open-progress', (view) => {
    const bar = element('progress', { max: 1, 'aria-label': t`How much of the model is here` });
    const text = element('p');
    view.root.replaceChildren(element('div', { class: 'open-progress', role: 'status' }, bar, text));
    const draw = () => {
      const { title, received, size, loading } = view.value ?? {};
      view.root.hidden = !title;
      if (!title) return;
      if (loading) bar.removeAttribute('value');
      else bar.value = received / Math.max(1, size);
      text.textContent = loading ? t`${title} is here and is being loaded.` : t`${title}: ${millions(received)} of ${millions(size)} MB`;
    };
    view.onValue(draw);
    draw();
    window.Cloze.askModel = (name) => {
      openFold('open');
      window.Cloze.askedModel = name.replace(/^hub\//, '');
      view.send('ask', {});
    };
    if (window.Cloze.offered?.()) window.Cloze.askModel(window.Cloze.offered());
  });

  /** A model has come: the list with it, and it is chosen; nothing is named any more, so that it can be named again. */
  function openedModel(found) {
    if (!found?.name) return [{ __type__: 'update' }, { __type__: 'update' }];
    const props = list();
    const choices = [...props.choices.filter(([, name]) => name !== found.name), [modelTitle(found.title), found.name]];
    props.choices = choices;
    window.Cloze.arrived(found.name);
    openFold('');
    if (sentence.model === found.name) change({ marks: new Map(sentence.marks) }); // what could not be answered is asked again
    return [{ __type__: 'update', choices, value: found.name }, null];
  }
  /** What was looked at is told, with the button that opens it, while it is what is named. */
  function offeredModel(offer, named) {
    const as = { __type__: 'update' };
    return offer && offer.text === named ? [offer.said, { ...as, visible: true }] : [as, as];
  }
  /** A model beside its published parent: the names of both. One that is not here is looked at first, and its size told. */
  function besideParent({ name, beside }) {
    const parent = `hub/${name}`;
    if (!list().choices.some(([, known]) => known === parent)) {
      window.Cloze.askModel(parent);
      document.getElementById('open-model').scrollIntoView({ block: 'center' });
    }
    return [beside, parent];
  }
  Object.assign(window.Cloze, { openedModel, offeredModel, besideParent, hiddenPart: HIDDEN });
})();
