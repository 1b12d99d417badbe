// Choosing tasks of the list: how many are chosen, all of the page at once, and buttons that wait
// for a choice. Without this script the buttons work, and the server says what is missing.
const boxes = () => [...document.querySelectorAll('input[name="ids"][form="choose"]')];

export function choose() {
  const all = document.getElementById("choose-all");
  if (!all) return;
  const page = pageBox();
  all.closest(".toolbar").prepend(page);
  document.addEventListener("change", (event) => {
    if (event.target.id === "choose-page") for (const box of boxes()) box.checked = event.target.checked;
    chosenChanged();
  });
  chosenChanged();
}

function pageBox() {
  const label = document.createElement("label");
  label.className = "check";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.id = "choose-page";
  label.append(box, " This page");
  return label;
}

export function chosenChanged() {
  const all = document.getElementById("choose-all");
  if (!all) return;
  const chosen = boxes().filter((box) => box.checked).length;
  const says = all.checked ? "all that match" : chosen ? `${chosen} chosen` : "none chosen";
  const told = document.getElementById("chosen");
  if (told.textContent !== says) told.textContent = says;
  for (const button of document.querySelectorAll("[data-needs-choice]")) {
    button.disabled = !all.checked && !chosen;
  }
  for (const box of boxes()) box.disabled = all.checked;
}
