// The Terms tab: a head's score taken apart, terms switched off, distances, the mask decoder.
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import { createMaps, numbers } from './maps.js';
import { NAMES, chances, nameOf, rowTable, sayRow, verdicts, whole } from './parts.js';
import { TEXT, TRY, buildPage, sumOf } from './page.js';

const { element, format, sentence, change, onSentence, question, asker, write, t, message } = window.Cloze;
const PLAIN = { reader: null, layer: 0, head: 0, stream: 'content', off: [], scope: 'head', gap: null, first: 0, reach: 16, size: null };
const REACHES = [16, 64, 160, 640];
const text200 = (value) => (typeof value === 'string' && value && value.length <= 200 ? value : null);

// What the address holds; whatever does not fit is left out.
function kept() {
  const found = window.Cloze.kept('terms') ?? {};
  return {
    reader: text200(found.reader),
    layer: wholeOr(found.layer, 0, 1000, 0),
    head: wholeOr(found.head, 0, 1000, 0),
    stream: ['content', 'query', 'mask_decoder'].includes(found.stream) ? found.stream : 'content',
    off: Array.isArray(found.off) ? found.off.filter((name) => Object.hasOwn(NAMES, String(name))).slice(0, 5) : [],
    scope: ['head', 'layer', 'model'].includes(found.scope) ? found.scope : 'head',
    gap: wholeOr(found.gap, 0, 511, null),
    first: wholeOr(found.first, 0, 511, 0),
    reach: REACHES.includes(found.reach) ? found.reach : 16,
    size: text200(found.size),
  };
}

function keep(state) {
  window.Cloze.keep('terms', Object.fromEntries(Object.entries(state).filter(([name, value]) => String(value) !== String(PLAIN[name]))));
}

export async function mount(view) {
  const state = { ...PLAIN, ...kept() };
  let asked = { rev: 0, key: '' };
  let tableRev = 0;
  let answer = null;
  let maps = null;
  let table = null;
  let wish = null; // of a "what to try" whose text is being cut into pieces
  let row = 0;
  const part = await buildPage(view.root, { set, attempt, switchOff });

  // --- questions --------------------------------------------------------------------------------

  const code = makeCode();
  const saver = makeSaver((what) => {
    const data = ours({ what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  part.files.append(...saver.buttons, code.root);
  const sizeSaid = () => t`${table.count} rows. Each distance from ${whole(table.exact[0])} to ${whole(table.exact[1])} has a row of its own.`;

  function fail(text, stop = false) {
    part.problem.hidden = !text;
    part.problem.textContent = text ?? '';
    part.results.hidden = stop;
    if (text) view.root.dataset.state = 'error';
  }
  const ours = (extra = {}) => question({ ...state, ...extra });
  const sendAsk = asker(view, 'ask', () => fail(TEXT.silent));
  const sendTable = asker(view, 'table', () => {});

  function ask() {
    if (sentence.error) { fail(message(sentence.error), true); asked = { ...asked, rev: 0 }; return; }
    if (!sentence.text) return;
    const data = ours();
    asked = { ...asked, rev: data.rev };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    sendAsk(data);
  }

  function askTable() {
    const data = question({ size: state.size });
    tableRev = data.rev;
    sendTable(data);
  }

  function set(patch) {
    const table = 'size' in patch && patch.size !== state.size;
    Object.assign(state, patch);
    keep(state);
    if (table) askTable();
    else ask();
  }

  function switchOff(name) {
    const off = state.off.includes(name) ? state.off.filter((each) => each !== name) : [...state.off, name];
    set({ off });
  }

  function attempt(entry) {
    const able = (names) => names.length > 1;
    const reader = answer && !able(answer.names) && answer.offered.length ? answer.offered[0][0] : state.reader;
    Object.assign(state, { ...PLAIN, size: state.size, reader, ...entry.patch });
    wish = entry;
    if (entry.text && sentence.text !== entry.text) {
      change({ marks: new Map() });
      write('sentence-text', entry.text);
    } else hideWish();
    keep(state);
    ask();
  }

  function hideWish() {
    if (!wish || (wish.text && sentence.text !== wish.text)) return;
    const { hide } = wish;
    wish = null;
    if (!hide) return;
    const letters = Array.from(sentence.text);
    const whole = (number) => {
      const own = sentence.tokens.filter((token) => token.word === number && !token.special);
      return letters.slice(own[0]?.start, own.at(-1)?.end).join('').trim().toLowerCase();
    };
    const found = sentence.tokens.filter((token) => !token.special && whole(token.word) === hide);
    if (found.length) {
      change({ marks: new Map() });
      window.Cloze.setHidden(found, true);
    }
  }

  // --- drawing ----------------------------------------------------------------------------------

  const drawer = createMaps(part.maps, (at) => {
    part.cell.replaceChildren(...(at && maps ? sumOf(answer, maps, at) : [TEXT.point]));
    if (at && at.row !== row) { row = at.row; drawRow(); }
  });

  function drawRow() {
    if (!answer || !part.rowDetails.open) return;
    row = Math.min(row, answer.rows.length - 1);
    part.rowBox.replaceChildren(rowTable(answer, maps, row));
    part.rowPick.replaceChildren(...answer.rows.map((position, n) => element('option', { value: n, text: `${position} ${answer.tokens[position].text}` })));
    part.rowPick.value = row;
  }
  part.rowDetails.addEventListener('toggle', drawRow);
  part.rowPick.addEventListener('change', () => { row = Number(part.rowPick.value); drawRow(); });

  function drawMaps() {
    const { names, off, top } = answer;
    const label = (position) => answer.tokens[position].text;
    const list = names.map((name, n) => ({
      key: name, title: nameOf(answer, name), sign: n ? '+' : '', note: off.includes(name) ? TEXT.offNote[answer.scope] : '', off: off.includes(name), kind: 'term', top, values: maps.terms[n],
    }));
    list.push({ key: 'score', title: TEXT.score, sign: '=', kind: 'term', top, values: maps.scores });
    list.push({ key: 'softmax', title: TEXT.softmax, sign: '→', kind: 'share', top: 1, values: maps.probabilities });
    if (off.length) {
      const values = maps.probabilities.map((value, n) => value - maps.before[n]);
      const most = Math.max(0.001, ...values.map(Math.abs));
      list.push({ key: 'change', title: TEXT.change, note: t`up to ${format.percent(most)}`, sign: 'Δ', kind: 'change', top: most, values });
    }
    drawer.draw({ maps: list, rows: answer.rows.map(label), columns: answer.columns.map(label) });
    part.scale.textContent = t`One scale for the terms and their sum: orange −${top.toFixed(2)}, paper 0, teal ${top.toFixed(2)}. The softmax is drawn by its square root.`;
    part.unseen.hidden = !maps.scores.some(Number.isNaN);
    part.check.textContent = answer.residue === 0
      ? TEXT.exact : t`Largest difference between the sum of the terms and the score in the trace: ${whole(answer.residue.toExponential(1))}.`;
    const last = answer.columns.at(-1);
    part.windowRow.hidden = answer.columns.length === answer.tokens.length;
    part.windowText.textContent = t`Pieces ${answer.first} to ${last} of ${answer.tokens.length}`;
    part.earlier.disabled = answer.first === 0;
    part.later.disabled = last === answer.tokens.length - 1;
    part.earlier.onclick = () => set({ first: Math.max(0, answer.first - 40) });
    part.later.onclick = () => set({ first: answer.first + 40 });
  }

  function drawPrediction() {
    const changed = answer.off.length > 0;
    const found = answer.prediction;
    part.gapRow.hidden = answer.gaps.length < 2;
    part.gapPick.replaceChildren(...answer.gaps.map((position) => element('option', { value: position, text: `${position} ${answer.tokens[position].own}` })));
    part.gapPick.value = answer.gap;
    let said = changed || answer.names.length === 1 ? '' : TEXT.allOn;
    if (found) {
      part.prediction.replaceChildren(chances(found, changed ? ['before', 'after'] : ['before']));
      const best = (n) => found.rows.reduce((a, b) => (b.chances[n] > a.chances[n] ? b : a));
      const [first, now] = [best(0), best(1)];
      if (changed) {
        said = first.id === now.id
          ? t`The best word stays “${first.display}”: ${format.percent(first.chances[0])} before, ${format.percent(first.chances[1])} after.`
          : t`The best word was “${first.display}” (${format.percent(first.chances[0])}), now it is “${now.display}” (${format.percent(now.chances[1])}).`;
      }
    } else if (answer.verdicts) {
      part.prediction.replaceChildren(verdicts(answer, changed));
      said = answer.marked ? TEXT.judgesMarked : TEXT.judges;
    } else {
      part.prediction.replaceChildren();
      said = answer.can_predict ? TEXT.hide : TEXT.silentModel;
    }
    part.said.textContent = said;
  }

  function drawDistances() {
    const { names, distances, curves } = answer;
    part.distance.show(answer.figure);
    const wide = Math.max(...distances.map(([distance]) => Math.abs(distance)), 0);
    part.edges.textContent = curves
      ? [t`Each distance from ${whole(curves.exact[0])} to ${whole(curves.exact[1])} has a row of its own; beyond, several share one.`,
        curves.edges.length ? t`The ${curves.edges.length} ticks on the axis are edges of buckets.` : TEXT.noEdges].join(' ')
      : names.includes('position') ? TEXT.sinusoids : TEXT.noTable;
    part.far.hidden = !curves || wide >= state.reach;
  }

  function drawDecoder() {
    const { decoder } = answer;
    part.decoder.replaceChildren(...(decoder ? [chances(decoder, decoder.columns)] : []));
    part.decoderWarn.hidden = !decoder;
    part.decoderNote.textContent = decoder ? t`The decoder runs the last layer ${decoder.steps} more times, from queries that start as position plus the input of that layer.`
      : answer.streams.includes('mask_decoder') ? TEXT.hideDecoder : TEXT.noDecoder;
  }

  function draw() {
    const single = answer.names.length === 1;
    const other = answer.reader !== answer.bar;
    part.draw(answer, state);
    part.plain.hidden = !single;
    part.plainText.textContent = t`${answer.reader} has one product q·k. Absolute positions are in the input, added to the pieces before the first layer, so no map can tell what comes from content and what from position.`;
    part.offers.replaceChildren(...answer.offered.filter(([name]) => name !== answer.reader).map(([name, title]) => element('button', {
      type: 'button', class: 'primary', 'data-reader': name, text: t`Look into ${title}`, onclick: () => set({ ...PLAIN, size: state.size, reader: name }),
    })));
    part.noneText.hidden = answer.offered.length > 0;
    part.otherRow.hidden = !other;
    part.otherText.textContent = t`${answer.reader} is taken apart in place of ${answer.bar}, with its own pieces.`;
    const [shown, read] = [answer.columns.length, answer.tokens.length];
    part.long.textContent = [
      answer.truncated ? t`The text is long: ${answer.reader} reads ${read} of its ${format.count(answer.whole)} pieces.` : '',
      shown < read ? t`The maps show ${shown} of ${read} pieces; the buttons below them lead to the others.` : '',
    ].filter(Boolean).join(' ');
    part.long.hidden = !part.long.textContent;
    drawMaps();
    drawRow();
    drawPrediction();
    drawDistances();
    drawDecoder();
    code.show(answer.code);
  }

  // --- events -----------------------------------------------------------------------------------

  // The guided tour chooses a model whose score has terms.
  document.addEventListener('cloze:lab', ({ detail }) => {
    if (detail !== 'terms' || !view.root.isConnected) return;
    Object.assign(state, PLAIN, kept());
    ask();
  });

  onSentence(view, () => {
    hideWish();
    const marks = [...sentence.marks.keys()].join();
    const key = `${sentence.model}\n${sentence.text}\n${marks}\n${sentence.error ?? ''}`;
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    asked.key = key;
    ask();
  });

  view.onValue(() => {
    const found = view.value;
    if (!found || saver.take(found)) return;
    if (found.rev === tableRev) {
      if (found.error) { part.tableSaid.textContent = message(found.error); return; }
      table = found;
      part.table.hidden = false;
      part.sizes.replaceChildren(...found.sizes.map((name) => element('option', { value: name, text: name })));
      part.sizes.value = found.size;
      part.formula.textContent = found.formula;
      part.tableRows.show(found.figure);
      part.distancePick.onchange = () => { part.tableSaid.textContent = sayRow(found, Math.trunc(Number(part.distancePick.value)) || 0); };
      part.tableSaid.textContent = sizeSaid();
      return;
    }
    if (found.rev !== asked.rev || (found.kind && found.kind !== 'terms')) return;
    view.root.dataset.rev = found.rev;
    fail(found.error && message(found.error), Boolean(found.error));
    if (found.error) return;
    answer = found;
    maps = { terms: found.terms.map(numbers), ...Object.fromEntries(['scores', 'probabilities', 'before'].map((name) => [name, numbers(found[name])])) };
    draw();
    view.root.dataset.state = 'ready';
  });
  askTable();
}
