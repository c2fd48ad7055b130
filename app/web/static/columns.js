// The columns of the chosen file: the server guesses their meanings from the file's beginning.

import { byId, parsed } from "./dom.js";

const chosenFile = byId("f-file");
chosenFile.addEventListener("change", async () => {
  const file = chosenFile.files[0];
  if (!file) return;
  const sent = new FormData(chosenFile.form);
  for (const name of ["header", "column"]) sent.delete(name);
  sent.set("look", "columns");
  sent.set("file", file.slice(0, 65_536), file.name);
  try {
    const response = await fetch(location.href, { method: "POST", body: sent });
    const page = parsed(await response.text());
    const fresh = page.getElementById("columns");
    if (fresh && chosenFile.files[0] === file) byId("columns").replaceChildren(...fresh.childNodes);
  } catch {
    // The server is unavailable. A file with known column names needs no choices.
  }
});
