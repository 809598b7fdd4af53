// The part `SpanPicture` of picture.py: chips with a hidden span, lines from the tokens around it to each place.
import { node } from '../../parts/svg.js';

const { element, format, texts } = window.Cloze;
const TEXT = texts({ sentence: 'The span in its sentence', boundary: 'boundary token' });

function column({ text, special, boundary, place, seen, gap, first }) {
  const inside = place !== undefined;
  const kind = inside ? 'hidden' : boundary ? 'boundary' : special ? 'special' : '';
  return element('li', { class: `column ${kind}` },
    element('bdi', { class: 'was', text: inside && !gap ? text : '' }),
    element('span', { class: 'token' }, element('bdi', { text: inside ? seen : text }), boundary ? element('span', { class: 'spoken', text: TEXT.boundary }) : null),
    inside ? element('span', { class: 'place', text: place }) : null,
    first ? element('span', { class: 'told' }, element('bdi', { text: first[0] }), element('small', { text: format.percent(first[1]), title: format.exact(first[1]) })) : null);
}

export function mount(view) {
  const row = element('ol');
  const lines = node('svg', { 'aria-hidden': 'true' });
  const stage = element('div', { class: 'stage', tabindex: '0', role: 'region', 'aria-label': TEXT.sentence }, element('div', {}, row, lines));
  view.root.replaceChildren(stage);

  const at = (part, bottom) => {
    const [a, b] = [part.getBoundingClientRect(), row.getBoundingClientRect()];
    return `${a.left + a.width / 2 - b.left} ${(bottom ? a.bottom : a.top) - b.top}`;
  };
  const fit = () => {
    const places = [...row.querySelectorAll('.place')];
    const edges = [...row.querySelectorAll('.boundary .token')];
    lines.setAttribute('width', row.scrollWidth);
    lines.setAttribute('height', row.clientHeight);
    lines.replaceChildren(...edges.flatMap((edge) => places.map((place) => node('path', { d: `M${at(edge, true)}L${at(place)}` }))));
  };
  const mark = () => {
    view.root.classList.toggle('more-before', stage.scrollLeft > 4);
    view.root.classList.toggle('more-after', stage.scrollLeft + stage.clientWidth < stage.scrollWidth - 4);
  };
  stage.addEventListener('scroll', mark, { passive: true });
  new ResizeObserver(() => { fit(); mark(); }).observe(row);

  const show = () => {
    const { columns, before, after } = view.value ?? {};
    view.root.hidden = !columns;
    if (!columns) return;
    const more = () => element('li', { class: 'more', text: '…' });
    row.replaceChildren(...(before ? [more()] : []), ...columns.map(column), ...(after ? [more()] : []));
    fit();
    // Begins with the span in sight, and its whole neighbour.
    const first = row.querySelector('.boundary') ?? row.querySelector('.hidden');
    stage.scrollLeft = row.scrollWidth > stage.clientWidth ? first.offsetLeft - 28 : 0;
    mark();
  };
  view.onValue(show);
  show();
}
