// Goes on with the page: what the server sends replaces what it has changed, and nothing else, so that the
// focus, a selection and the place in the page stay as they are.
"use strict";

const live = document.getElementById("live");
const link = document.getElementById("link");
const pause = document.getElementById("pause");
const form = document.getElementById("filter");

let source = null;
let again = 0; // a timer, as is
let late = 0;
let events = live.dataset.events;
let paused = false;

// morph makes an element as another one is, with as little change as that takes.
function morph(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, to);
}

// nameOf is what tells a child from its siblings, if it is not its place.
function nameOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  const name = node.id || node.dataset.key || node.getAttribute("aria-labelledby");
  return name ? node.nodeName + " " + name : "";
}

function morphChildren(from, to) {
  const wanted = new Set([...to.childNodes].map(nameOf));
  const named = new Map();
  for (const child of [...from.childNodes]) {
    const name = nameOf(child);
    if (name && wanted.has(name)) named.set(name, child);
    else if (name) child.remove();
  }
  let at = from.firstChild;
  for (const child of [...to.childNodes]) {
    const name = nameOf(child);
    const old = name ? named.get(name) : at;
    named.delete(name);
    if (!old || old.nodeName !== child.nodeName || (!name && nameOf(old))) {
      from.insertBefore(child, at);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else from.insertBefore(old, at);
    if (old.nodeType === Node.ELEMENT_NODE) morph(old, child);
    else if (old.nodeValue !== child.nodeValue) old.nodeValue = child.nodeValue;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// show puts what the server has sent in place. What had the focus keeps it where it has moved.
function show(html) {
  const focused = document.activeElement;
  morphChildren(live, new DOMParser().parseFromString(html, "text/html").body);
  if (focused && focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

function say(text, off) {
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("off", off);
}

// fresh says that the page goes on. A table that does not answer, or takes long to read, sends nothing.
function fresh() {
  say("Live", false);
  clearTimeout(late);
  late = setTimeout(() => say("Nothing was read for long: what is shown is old", true), 3000 * live.dataset.every + 5000);
}

// connect has the server send while the page is seen: nothing is read for one that is not.
function connect() {
  if (source) source.close();
  source = null;
  clearTimeout(again);
  clearTimeout(late);
  if (paused || document.hidden) return;
  source = new EventSource(events);
  source.onopen = fresh;
  source.onerror = () => {
    clearTimeout(late);
    say("Not connected: what is shown is old", true);
    // A browser tries again by itself, but not after an answer such as a proxy's, or one that all streams are taken.
    if (source.readyState === EventSource.CLOSED) again = setTimeout(connect, 5000);
  };
  source.onmessage = (message) => {
    show(message.data);
    fresh();
  };
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  if (paused) say("Paused", false);
  connect();
});
document.addEventListener("visibilitychange", connect);
window.addEventListener("pagehide", () => source && source.close());
window.addEventListener("pageshow", (event) => event.persisted && connect());

if (form) {
  let soon = 0;
  const filter = () => {
    const query = new URLSearchParams(new FormData(form));
    if (!query.get("q")) query.delete("q");
    const text = query.toString();
    history.replaceState(null, "", text ? "/?" + text : "/");
    events = text ? "/events?" + text : "/events";
    connect();
  };
  form.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(filter, 200);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(soon);
    filter();
  });
}

connect();
