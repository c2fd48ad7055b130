// Placeholders for names in a text. A click inserts one at the cursor.

import { all, byId, textButton } from "./dom.js";

// Makes the names in `within` buttons that insert themselves into the field that `into` returns.
export const offerNames = (within, into) => {
  for (const name of all("li code", within)) {
    const button = textButton(name.textContent, () => {
      const field = into();
      field.setRangeText(button.textContent, field.selectionStart, field.selectionEnd, "end");
      field.focus();
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    name.replaceWith(button);
  }
};

for (const details of all("details.names[data-into]")) {
  details.querySelector(".names-usage").hidden = false;
  offerNames(details, () => byId(details.dataset.into));
}
