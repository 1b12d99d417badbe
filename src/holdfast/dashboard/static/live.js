// Keeps the page up to date while it is looked at: by a stream, or by asking now and then where
// streams do not come through. A page in the background asks for nothing: browsers have six
// connections to a host, and many tabs.
import { chosenChanged } from "./choose.js";
import { morph } from "./morph.js";
import { showTimes } from "./times.js";

const TRIES = 3;
const ASK_EVERY = 5000;
let path, source, timer;
let failures = 0;
let paused = false;
const versions = {};

export function follow(livePath) {
  if (!livePath) return;
  path = livePath;
  const state = document.getElementById("live-state");
  state.hidden = false;
  document.getElementById("live-pause").addEventListener("click", toggle);
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : begin()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => event.persisted && begin());
  begin();
}

function toggle(event) {
  paused = !paused;
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Go on" : "Pause";
  if (paused) stop();
  else begin();
  say(paused ? "Paused" : "Live", paused ? "" : "is-live");
}

function begin() {
  stop();
  if (paused || document.hidden) return;
  if (failures >= TRIES) ask();
  else listen();
}

function stop() {
  source?.close();
  source = undefined;
  clearTimeout(timer);
}

function listen() {
  source = new EventSource(path);
  source.addEventListener("open", () => say("Live", "is-live"));
  source.addEventListener("fragment", (event) => {
    failures = 0;
    put(JSON.parse(event.data));
  });
  source.addEventListener("away", (event) => away(JSON.parse(event.data).says));
  source.addEventListener("gone", () => location.reload());
  source.addEventListener("error", () => {
    failures += 1;
    say("Connecting", "is-away");
    if (source?.readyState === EventSource.CLOSED || failures >= TRIES) {
      stop();
      timer = setTimeout(ask, Math.min(1000 * failures, ASK_EVERY));
    }
  });
}

async function ask() {
  if (paused || document.hidden) return;
  try {
    const seen = Object.entries(versions).map(([name, version]) => `${name}:${version}`).join(".");
    const headers = { Accept: "application/json", "Last-Event-ID": seen };
    const answer = await fetch(path, { headers, redirect: "error" });
    if (answer.status === 401 || answer.status === 404) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    const told = await answer.json();
    if (told.gone) return location.reload();
    told.fragments.forEach(put);
    away(told.away);
    if (!told.away) say("Live", "is-live");
    failures = Math.max(failures, TRIES);
  } catch {
    say("Away", "is-away");
    away("The server cannot be reached. This page goes on by itself as soon as it is back.");
  }
  timer = setTimeout(ask, ASK_EVERY);
}

function put({ name, version, html }) {
  versions[name] = version;
  const section = document.querySelector(`[data-live="${CSS.escape(name)}"]`);
  if (!section) return;
  const fresh = section.cloneNode(false);
  fresh.innerHTML = html;
  showTimes(fresh);
  const before = announced(section);
  const log = section.querySelector(".log");
  const atEnd = log && log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  morph(section, fresh);
  if (atEnd) log.scrollTop = log.scrollHeight;
  const after = announced(section);
  if (after && after !== before) document.getElementById("polite").textContent = after;
  chosenChanged();
}

function announced(section) {
  return [...section.querySelectorAll("[data-announce]")].map((each) => each.textContent.trim()).join(". ");
}

function away(says) {
  const note = document.getElementById("away");
  note.hidden = !says;
  if (says) {
    note.textContent = says.includes("by itself") ? says : `${says} This page goes on by itself as soon as it is back.`;
    say("Away", "is-away");
  } else if (note.textContent) {
    note.textContent = "";
    say("Live", "is-live");
  }
}

function say(text, kind) {
  const state = document.getElementById("live-state");
  state.classList.remove("is-live", "is-away");
  if (kind) state.classList.add(kind);
  const says = document.getElementById("live-says");
  if (says.textContent !== text) says.textContent = text;
}
