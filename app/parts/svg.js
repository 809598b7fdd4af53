// One part of a drawing.
export const SVG = 'http://www.w3.org/2000/svg';

/** An SVG element; `text` among its properties is what it says, undefined ones are left out. Children are elements, texts or numbers. */
export function node(tag, properties, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'text') made.textContent = value;
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}
