// A button beside what one may want to copy.
export function copy() {
  if (!navigator.clipboard) return;
  for (const place of document.querySelectorAll(".copyable")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(place.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    place.append(button);
  }
}
