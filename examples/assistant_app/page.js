// Everything that people or agents wrote is shown by textContent: it can never become markup.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const $ = (id) => document.getElementById(id);

function add(list, tag, kind, ...parts) {
  const item = document.createElement(tag);
  item.className = kind;
  item.append(...parts);
  list.append(item);
  item.scrollIntoView({ block: "nearest" });
  return item;
}

function element(tag, text, kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

function button(text, act) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

const local = (instant) =>
  new Date(instant).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await post("/login", { name: $("name").value });
  $("login-problem").textContent = answer.ok ? "" : "That name cannot be used.";
  if (answer.ok) await begin(await answer.json());
});

// Whoever comes back is still logged in.
fetch("/api/me").then(async (answer) => answer.ok && begin(await answer.json()));

async function begin({ name }) {
  $("who").textContent = name;
  $("login").hidden = true;
  $("product").hidden = false;
  $("text").focus();
  listen();
  await refresh();
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value;
  $("text").value = "";
  add($("said"), "li", "mine", text);
  say(text);
});

async function say(text, confirm = null) {
  const wait = add($("said"), "li", "step", "…");
  const body = { text, timezone: zone, id: crypto.randomUUID(), confirm };
  const answer = await post("/chat", body);
  if (!answer.ok) return wait.replaceWith(element("li", "That was not understood.", "theirs problem"));
  for await (const [name, data] of events(answer)) {
    if (name === "progress") wait.textContent = `${data}…`;
    if (name === "problem") wait.replaceWith(element("li", data, "theirs problem"));
    if (name === "answer") wait.replaceWith(shown(data));
  }
  await refresh();
}

function shown(answer) {
  const item = element("li", answer.message, `theirs ${answer.status}`);
  if (answer.next_runs.length) {
    const runs = document.createElement("ul");
    answer.next_runs.forEach((run) => add(runs, "li", "run", local(run)));
    item.append(runs);
  }
  answer.assumptions.forEach((each) => item.append(element("p", each, "assumed")));
  if (answer.status === "needs_confirmation") {
    item.append(button("Yes", () => say("yes", true)), button("No", () => say("no")));
  }
  return item;
}

async function refresh() {
  const tasks = await (await fetch("/api/tasks")).json();
  $("no-tasks").hidden = tasks.length > 0;
  $("tasks").replaceChildren(...tasks.map(row));
}

function row(task) {
  const item = element("li", "", task.status);
  const next = task.next && task.status === "active" ? `next ${local(task.next)}` : task.status;
  const verbs = task.status === "paused" ? ["resume", "delete"] : ["run", "pause", "delete"];
  item.append(element("strong", task.title), element("span", task.words), element("small", next));
  verbs.forEach((verb) =>
    item.append(
      button(verb, async () => {
        await post(`/api/tasks/${encodeURIComponent(task.id)}/${verb}`, {});
        await refresh();
      }),
    ),
  );
  return item;
}

function listen() {
  const source = new EventSource("/api/inbox");
  source.addEventListener("item", (event) => {
    const result = JSON.parse(event.data);
    $("no-results").hidden = true;
    const item = document.createElement("li");
    item.append(element("strong", result.title), element("small", local(result.at)));
    item.append(element("p", result.content));
    $("results").prepend(item);
    refresh();
  });
}

const post = (path, body) =>
  fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const lines = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s)));
      yield [lines.event, JSON.parse(lines.data)];
    }
  }
}
