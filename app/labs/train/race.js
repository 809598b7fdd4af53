// Training: a race. All curves in one chart, and a table of what each model reached.
import { get, post, said as heard } from './api.js';
import { code, scroll } from './areas.js';
import { makeCurves } from './curves.js';
import { makeExtremes } from './extremes.js';
import { makeSilent, makeSure, progress, waiting } from './head.js';
import { STATES, figure, figureName, many, setName } from './words.js';

const { element, asker, format, openTab, t, texts } = window.Cloze;
const TEXT = texts({
  stop: 'Stop', resume: 'Continue', start: 'Start', again: 'New race from this one', remove: 'Delete',
  table: 'What each model reached', none: 'The curves start with the first reports. The text is prepared for each run first.',
  axes: { tokens: 'tokens', step: 'steps', flops: 'operations', seconds: 'time' },
  waiting: { waiting: 'waiting', measuring: 'measuring' }, probe: (name) => t`probe: ${name}`, words: 'hidden words', pairs: 'minimal pairs',
  yard: 'without any model', note: 'Losses of different objectives cannot be compared with each other; the probes can. Dots are held-out text.',
  open: 'Open', every: 'The model is then chosen in every tab.', log: 'Log', command: 'The command that starts or continues this race',
  more: 'There are more columns: scroll the table sideways.',
  columns: { name: 'Model', state: 'State', parameters: 'Parameters', tokens: 'Tokens', losses: 'Held-out loss' },
  majority: (value) => t`majority ${value}`, bag_of_words: (value) => t`bag of words ${value}`, guest: 'started from another browser',
});
const pick = (label, id, change) => {
  const select = element('select', { id, onchange: change });
  return { select, root: element('label', { class: 'train-pick' }, element('span', { text: label }), select) };
};
const share = (value) => (value === undefined || value === null ? '' : `${(value * 100).toFixed(1)}\u00a0%`);

export function makeRace(view, { onAgain, onGone, onChange }) {
  let current = null;
  let found = null;
  let live = null;
  const name = element('h3');
  const badge = element('span', { class: 'train-state' });
  const facts = element('p', { class: 'train-facts' });
  const bar = element('span', { class: 'train-fill' });
  const reason = element('p', { class: 'problem', role: 'status', hidden: true });
  const said = element('p', { class: 'problem', role: 'alert', hidden: true });
  const log = code(TEXT.log, 'train-log');
  const command = code(TEXT.command);
  const button = (text, id, act, kind = 'quiet outlined') => element('button', { type: 'button', class: kind, id, text, onclick: act });
  let lost = false; // the message is that the server did not answer
  const tell = (text, silent = false) => { [said.hidden, said.textContent, lost] = [!text, text, silent]; };
  const act = async (action, id = current, values = {}) => {
    tell('');
    try {
      await post(`runs/${id}/${action}`, values);
      if (action === 'delete') onGone(id);
    } catch (error) { if (id === current) tell(error.message, Boolean(error.silent)); }
    onChange();
  };
  const stop = button(TEXT.stop, 'train-race-stop', () => act('stop'));
  const resume = button(TEXT.resume, 'train-race-continue', () => act('start'), 'primary');
  const again = button(TEXT.again, 'train-race-again', () => onAgain(current));
  const remove = button(TEXT.remove, 'train-race-delete', () => sure.ask(current, name.textContent));
  const sure = makeSure('train-race', (id) => act('delete', id, { confirm: id }));
  const silent = makeSilent();
  const curves = makeCurves('train-race', TEXT.axes, () => cells());
  const early = element('p', { class: 'train-note', text: TEXT.none });
  const table = element('table', { class: 'train-results' });
  const failures = element('ul', { class: 'train-failures problem', hidden: true });
  const box = scroll(TEXT.table, table);
  const more = element('p', { class: 'train-note train-more', text: TEXT.more, hidden: true });
  const measure = () => {
    more.hidden = box.scrollWidth <= box.clientWidth + 1;
    box.classList.toggle('more', box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  box.addEventListener('scroll', measure, { passive: true });
  new ResizeObserver(measure).observe(box);
  const whose = pick(TEXT.columns.name, 'train-race-whose', () => fillExtremes());
  const extremes = makeExtremes(whose.root);
  const root = element('div', { class: 'train-run train-race' },
    element('section', { class: 'card train-head' }, element('header', {}, name, badge), facts,
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, bar), silent.root, reason, said,
      element('p', { class: 'train-actions' }, stop, resume, again, remove, sure.root)),
    early, curves.root, element('p', { class: 'train-note', text: TEXT.note }),
    element('section', { class: 'card train-reached' }, element('h3', { text: TEXT.table }), failures, more, box), extremes.root,
    element('section', { class: 'card train-settings' }, element('details', {}, element('summary', { text: TEXT.log }), log),
      element('details', {}, element('summary', { text: TEXT.command }), command)));

  let goTo = 'Mask';
  let revision = 0;
  let opening = null; // the race whose model is being opened
  const send = asker(view, 'open');
  view.onValue(() => {
    if (!revision || view.value?.rev !== revision || !root.isConnected) return;
    if (view.value.error) { if (opening === current) tell(heard(view.value.error)); return; }
    openTab(goTo);
  });
  const openModel = (row) => {
    goTo = 'replaced_token' in row.objectives ? 'Forge' : 'Mask'; // a discriminator has no head that fills gaps
    revision = Date.now() % 2 ** 31;
    opening = current;
    send({ rev: revision, name: `run/${current}/${row.name}` });
  };

  function opener(row) {
    const made = button(TEXT.open, '', () => openModel(row));
    made.title = TEXT.every;
    return made;
  }

  function draw() {
    if (!found || !root.isConnected) return;
    const records = Object.values(found.series).flat();
    early.hidden = records.length > 0;
    curves.fill(current, [], records.length ? String(records.length) : '');
  }

  /** The table as rows of plain values, the figures unrounded. */
  function cells() {
    const flat = (value, path) => (value !== null && typeof value === 'object' ? Object.entries(value).flatMap(([key, child]) => flat(child, path ? `${path}.${key}` : key))
      : [[path, value]]);
    const rows = found.rows.map((row) => new Map(flat(row, '')));
    const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
    return [names, ...rows.map((row) => names.map((key) => row.get(key) ?? ''))];
  }

  function fillTable() {
    const probes = [...new Set([...found.rows.flatMap((row) => Object.keys(row.probes ?? {})), ...Object.keys(found.probe_baselines)])];
    const words = found.rows.some((row) => row.words);
    const pairs = found.rows.some((row) => row.minimal_pairs);
    const losses = (row) => Object.entries(row.held_out ?? {}).filter(([key]) => /_loss$/.test(key))
      .map(([key, value]) => `${figureName(key).replace(' loss', '').toLowerCase()} ${figure(key, value)}`);
    const best = (value) => Math.max(...found.rows.map(value).filter(Number.isFinite));
    // On a narrow page each row is a card, and what the column is called stands beside the value.
    const td = (label, values, ...children) => element('td', { 'data-label': label, ...values }, ...children);
    const cell = (label, value, top) => td(label, { class: Number.isFinite(value) && value === top ? 'best' : null, text: share(value) });
    const { columns } = TEXT;
    const names = probes.map((probe) => TEXT.probe(setName(probe)));
    const heads = [columns.name, columns.state, columns.parameters, columns.tokens, ...names, ...(words ? [TEXT.words] : []), ...(pairs ? [TEXT.pairs] : []), columns.losses];
    const tops = probes.map((probe) => best((row) => row.probes?.[probe]?.value));
    const topWords = best((row) => row.words?.accuracy);
    const topPairs = best((row) => row.minimal_pairs?.accuracy);
    const yard = probes.map((probe) => ['majority', 'bag_of_words'].filter((kind) => found.probe_baselines[probe]?.[kind] !== undefined)
      .map((kind) => element('div', { text: TEXT[kind](share(found.probe_baselines[probe][kind])) })));
    table.replaceChildren(element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col', text })))),
      element('tbody', {}, ...found.rows.map((row, tone) => element('tr', { 'data-entrant': row.name, 'data-state': row.state },
        element('th', { scope: 'row' }, element('span', { class: 'key', style: `background: var(--series-${tone % 8})` }), element('span', { text: row.name })),
        td(columns.state, {}, found.models.includes(`run/${current}/${row.name}`) && row.state === 'finished'
          ? opener(row)
          : element('span', { text: row.state === 'running' ? t`${format.count(row.step)} of ${format.count(row.steps)}` : TEXT.waiting[row.state] ?? STATES[row.state] ?? row.state })),
        td(columns.parameters, { text: many(row.parameters + row.generator_parameters) }), td(columns.tokens, { text: row.tokens ? many(row.tokens) : '' }),
        ...probes.map((probe, n) => cell(names[n], row.probes?.[probe]?.value, tops[n])), ...(words ? [cell(TEXT.words, row.words?.accuracy, topWords)] : []),
        ...(pairs ? [cell(TEXT.pairs, row.minimal_pairs?.accuracy, topPairs)] : []), td(columns.losses, { class: 'losses' }, element('div', {}, ...losses(row).map((text) => element('div', { text })))))),
      probes.length ? element('tr', { class: 'train-yard' }, element('th', { scope: 'row', text: TEXT.yard }), td(''), td(''), td(''),
        ...yard.map((lines, n) => td(names[n], {}, element('div', {}, ...lines))),
        ...(words ? [td('')] : []), ...(pairs ? [td('')] : []), td('')) : null));
    const failed = found.rows.filter((row) => row.reason);
    failures.hidden = !failed.length;
    failures.replaceChildren(...failed.map((row) => element('li', { text: `${row.name}: ${heard(row.reason)}` })));
    measure();
  }

  /** The hardest and easiest held-out examples of one entrant: the one that is chosen, at first the first. */
  function fillExtremes() {
    const validated = (name) => found.series[name]?.findLast((each) => Object.keys(each).some((key) => key.startsWith('validation_')))?.step;
    const names = found.rows.map((row) => row.name).filter(validated);
    if (whose.select.dataset.key !== names.join('|')) {
      const kept = whose.select.value;
      whose.select.replaceChildren(...names.map((name) => element('option', { value: name, text: name })));
      if (names.includes(kept)) whose.select.value = kept;
      whose.select.dataset.key = names.join('|');
    }
    const name = whose.select.value;
    extremes.fill(`runs/${current}/examples?${new URLSearchParams({ entrant: name })}`, validated(name) ?? null);
  }

  function fillHead(summary) {
    name.textContent = summary.name;
    badge.textContent = STATES[summary.state] ?? summary.state ?? '';
    badge.dataset.state = summary.state ?? '';
    root.dataset.run = summary.id;
    root.dataset.state = summary.state ?? '';
    root.dataset.step = summary.step ?? '';
    bar.style.transform = `scaleX(${summary.steps ? summary.step / summary.steps : 0})`;
    facts.textContent = [t`${summary.model?.race ?? 0} models`, progress(summary) ? t`step ${format.count(summary.step)} of ${format.count(summary.steps)} in all` : null,
      ...waiting(summary), live && !live.owned ? TEXT.guest : null].filter(Boolean).join(' · ');
    reason.hidden = !summary.reason;
    reason.textContent = heard(summary.reason ?? '');
    silent.fill(summary);
  }

  function fill() {
    const { summary } = live;
    root.classList.remove('pending');
    root.classList.toggle('read-only', !live.mine);
    fillHead(summary);
    stop.hidden = !['queued', 'starting', 'running', 'stopping'].includes(summary.state);
    stop.disabled = summary.state === 'stopping';
    resume.hidden = !['new', 'stopped', 'failed', 'crashed'].includes(summary.state);
    resume.textContent = summary.step ? TEXT.resume : TEXT.start;
    remove.hidden = !stop.hidden;
    if (remove.hidden) sure.close();
    log.textContent = live.log.join('\n');
    command.textContent = live.command;
  }

  return {
    root,
    /** brief: the race as the list of runs knows it, shown until its own report is there. */
    show(id, _, brief) {
      if (id === current) return;
      [current, found, live, extremes.root.hidden] = [id, null, null, true];
      extremes.fill('', null);
      curves.fill(id, [], '');
      tell('');
      sure.close();
      root.classList.add('pending');
      if (id) fillHead(brief ?? { id, name: id });
    },
    async poll(enabled) {
      const id = current;
      const [state, race] = await Promise.all([get(`runs/${id}`), get(`runs/${id}/race`)]);
      if (id !== current) return;
      if (lost) tell('');
      [live, found] = [{ ...state, owned: state.mine, mine: enabled && state.mine }, race];
      root.classList.toggle('switched-off', !enabled);
      fill();
      draw();
      fillTable();
      fillExtremes();
    },
  };
}
