// Schedules: the calendar in the viewer's own zone, the viewer's zone as the first choice, and the
// next runs of a rule while it is typed. Without this script there is UTC, and a button.
import { showTimes } from "./times.js";

const PAUSE = 400;
const LOOK_AGAIN = 60000;
const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function schedules() {
  zones();
  if (document.getElementById("calendar")) {
    calendar();
    setInterval(() => document.hidden || calendar(), LOOK_AGAIN);
  }
  const form = document.querySelector("form[data-preview-path]");
  if (form) follow(form);
}

function zones() {
  const list = document.getElementById("known-zones");
  if (!list) return;
  for (const name of Intl.supportedValuesOf("timeZone")) list.append(new Option("", name));
  const field = document.querySelector("[data-own-zone], #i-zone");
  if (field && field.value === "UTC" && field.value === field.defaultValue) field.value = own;
}

async function calendar() {
  const address = new URL(location.href);
  address.searchParams.set("zone", own);
  address.hash = "";
  const page = await load(address, { redirect: "error" });
  const fresh = page?.getElementById("calendar");
  if (fresh) document.getElementById("calendar").replaceWith(fresh);
}

function follow(form) {
  let timer, asking;
  const look = async () => {
    asking?.abort();
    asking = new AbortController();
    const said = new URLSearchParams(new FormData(form));
    if (!said.get("rule")) return;
    const options = { method: "POST", body: said, signal: asking.signal, redirect: "error" };
    const page = await load(form.dataset.previewPath, options);
    const fresh = page?.getElementById("preview");
    if (!fresh) return;
    showTimes(fresh);
    document.getElementById("preview").replaceChildren(...fresh.childNodes);
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  if (!form.querySelector("#preview ol")) look();
}

async function load(address, options) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, ...options });
    if (!answer.ok && answer.status !== 422) return undefined;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return undefined;
  }
}
