// The fold that opens a model of the hub or a folder: how far it has come, and its way into the list (open_model.py).
(() => {
  'use strict';
  const { element, register, modelTitle, openFold, t } = window.Cloze;
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

  /** A model has come: the list with it, and it is chosen. */
  function openedModel(found) {
    if (!found?.name) return { __type__: 'update' };
    const props = list();
    const choices = [...props.choices.filter(([, name]) => name !== found.name), [modelTitle(found.title), found.name]];
    props.choices = choices;
    window.Cloze.arrived(found.name);
    openFold('');
    return { __type__: 'update', choices, value: found.name };
  }
  Object.assign(window.Cloze, { openedModel, hiddenPart: HIDDEN });
})();
