// Times in the viewer's own zone; UTC stays in the title. Without this script they are in UTC.
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const both = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const STEPS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function showTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) show(each);
}

function show(element) {
  const at = new Date(element.dateTime);
  const text = element.dataset.form === "ago" ? ago(at) : whole(at);
  if (element.textContent !== text) element.textContent = text;
}

function whole(at) {
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : both.format(at);
}

function ago(at) {
  const seconds = (Date.now() - at) / 1000;
  if (Math.abs(seconds) < 1.5) return "now";
  const [size, unit] = STEPS.find(([size]) => Math.abs(seconds) >= size) ?? STEPS.at(-1);
  const number = Math.floor(Math.abs(seconds) / size);
  return seconds > 0 ? `${number} ${unit} ago` : `in ${number} ${unit}`;
}
