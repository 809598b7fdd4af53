// What a link keeps of a lab made of Gradio's components (app/parts/controls.py). Names with a dot belong to the switch before it.
(() => {
  'use strict';
  const { Cloze } = window;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const kind = (value) => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value);

  Cloze.keepValues = ([lab, plain], values) => {
    const state = {};
    Object.keys(plain).forEach((name, n) => {
      const [group, member] = name.split('.');
      if (member) { if (state[group] === true || state[group]?.constructor === Object) state[group] = { ...state[group], [member]: values[n] }; }
      else if (!same(values[n], plain[name])) state[name] = values[n];
    });
    if (!same(state, Cloze.kept(lab) ?? {})) Cloze.keep(lab, state);
  };

  // A component without a value in the link, or with one of another kind, stays as it is: Gradio takes a value for an act.
  const AS_IT_IS = { __type__: 'update' };
  Cloze.keptValues = ([lab, plain]) => {
    const state = Cloze.kept(lab) ?? {};
    return Object.entries(plain).map(([name, first]) => {
      const [group, member] = name.split('.');
      const found = member ? state[group]?.[member] : state[name];
      if (kind(first) === 'boolean' && found?.constructor === Object) return true;
      return kind(found) === kind(first) ? found : AS_IT_IS;
    });
  };
})();
