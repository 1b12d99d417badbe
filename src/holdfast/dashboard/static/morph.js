// Makes one element like another and keeps what the viewer did to it: focus, scrolled place, open
// folds, typed text and ticks. Children are the same if they have the same `data-key` or `id`, or
// else if they stand at the same place and are of the same kind.

export function morph(live, fresh) {
  attributes(live, fresh);
  children(live, fresh);
}

const THEIRS = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };

function attributes(live, fresh) {
  const theirs = THEIRS[live.tagName] ?? [];
  for (const { name } of [...live.attributes]) {
    if (!fresh.hasAttribute(name) && !theirs.includes(name)) live.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!theirs.includes(name) && live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
}

function children(live, fresh) {
  const known = new Map();
  for (const child of live.children) if (key(child)) known.set(key(child), child);
  let at = live.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const found = match(at, wanted, known);
    if (found === null) {
      live.insertBefore(wanted, at);
      continue;
    }
    if (found !== at) live.insertBefore(found, at);
    if (found.nodeType === Node.ELEMENT_NODE) morph(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
    at = found.nextSibling;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function match(at, wanted, known) {
  const name = key(wanted);
  if (name) {
    const found = known.get(name);
    known.delete(name);
    return found && found.tagName === wanted.tagName ? found : null;
  }
  if (!at || key(at) || at.nodeType !== wanted.nodeType) return null;
  return at.nodeName === wanted.nodeName ? at : null;
}

function key(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || null : null;
}
