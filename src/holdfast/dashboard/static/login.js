// A token in the fragment (`/login#token=…`) never reaches the server's log, and leaves the address
// bar at once.
const found = new URLSearchParams(location.hash.slice(1)).get("token");
if (location.hash) history.replaceState(null, "", location.pathname + location.search);
if (found) {
  const field = document.getElementById("token");
  field.value = found;
  field.form.requestSubmit();
}
