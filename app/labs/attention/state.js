// Attention: what the tab remembers. The address keeps it; what comes from there may be anything.

const { Cloze } = window;

export const MODES = ['heads', 'combined', 'rollout', 'norms', 'off', 'products', 'compare'];
export const FILTERS = ['all', 'ab', 'ba', 'within'];
const WAYS = ['mean', 'max'];
const KINDS = ['mean', 'head', 'rollout'];
const MOST = 999;

const DEFAULTS = {
  mode: 'heads',
  layer: 'auto', // a number, null for the mean, 'auto' for the page's own choice
  headNumber: 'auto',
  hide: false,
  own: false,
  second: '', // the second sentence
  part: 'all', // which links of a pair are shown
  picks: [], // "layer.head" of the heads that are combined
  how: 'mean',
  token: null, // whose rollout; null = [CLS]
  upto: null, // layers of the rollout; null = all
  off: [], // "layer.head" of the heads that are switched off
  shared: true, // in every layer that has their weights
  gap: null, // the hidden word that is watched; null = the first
  query: null, // null = the page's own choice
  other: null, // the second model
  what: 'mean', // what is compared
  place: null, // "layer.head" of the other model
};

export const state = { ...DEFAULTS };

const whole = (value) => Number.isInteger(value) && value >= 0 && value <= MOST;
const listed = (text) => (typeof text === 'string' && /^(\d{1,3}\.\d{1,3}( |$))*$/.test(text) ? [...new Set(text.split(' ').filter(Boolean))] : []);
const one = (value, names, otherwise) => (names.includes(value) ? value : otherwise);

/** Take over what the address kept; whatever is no value of ours becomes the default. */
export function restore() {
  const kept = Cloze.kept('attention') ?? {};
  const place = (value) => (whole(value) ? value : value === -1 ? null : 'auto');
  Object.assign(state, DEFAULTS, {
    mode: one(kept.m, MODES, DEFAULTS.mode),
    layer: place(kept.l),
    headNumber: place(kept.h),
    hide: kept.x === 1,
    own: kept.o === 1,
    second: typeof kept.s === 'string' ? kept.s.slice(0, 1000) : '',
    part: one(kept.f, FILTERS, 'all'),
    picks: listed(kept.p),
    how: one(kept.w, WAYS, 'mean'),
    token: whole(kept.t) ? kept.t : null,
    upto: whole(kept.n) && kept.n > 0 ? kept.n : null,
    off: listed(kept.z),
    shared: kept.u !== 0,
    gap: whole(kept.g) ? kept.g : null,
    query: whole(kept.q) ? kept.q : null,
    other: typeof kept.c === 'string' ? kept.c.slice(0, 200) : null,
    what: one(kept.y, KINDS, 'mean'),
    place: listed(kept.a)[0] ?? null,
  });
  if ((state.layer === 'auto') !== (state.headNumber === 'auto') || (state.layer === null && state.headNumber !== null)) {
    Object.assign(state, { layer: 'auto', headNumber: 'auto' });
  }
}

/** Put the settings into the address, without those that are as they start. */
export function keep() {
  const place = (value) => (value === null ? -1 : value);
  const chosen = state.layer !== 'auto' && state.fixed;
  const values = {
    m: state.mode,
    l: chosen ? place(state.layer) : 'auto',
    h: chosen ? place(state.headNumber) : 'auto',
    x: Number(state.hide),
    o: Number(state.own),
    s: state.second,
    f: state.part,
    p: state.picks.join(' '),
    w: state.how,
    t: state.token,
    n: state.upto,
    z: state.off.join(' '),
    u: Number(state.shared),
    g: state.gap,
    q: state.query,
    c: state.other,
    y: state.what,
    a: state.place,
  };
  const usual = { m: 'heads', l: 'auto', h: 'auto', x: 0, o: 0, s: '', f: 'all', p: '', w: 'mean', z: '', u: 1, y: 'mean' };
  const own = Object.entries(values).filter(([name, value]) => value !== null && value !== usual[name]);
  Cloze.keep('attention', Object.fromEntries(own));
}

/** "2.3" -> [2, 3] */
export const pairOf = (text) => text.split('.').map(Number);
