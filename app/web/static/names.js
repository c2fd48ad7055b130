// details.names[data-into]: placeholders for names in a text. A click inserts one at the cursor of that field.
"use strict";
for (const details of document.querySelectorAll("details.names[data-into]")) {
  const text = document.getElementById(details.dataset.into);
  details.querySelector(".names-usage").hidden = false;
  for (const name of details.querySelectorAll("li code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = name.textContent;
    button.addEventListener("click", () => {
      text.setRangeText(button.textContent, text.selectionStart, text.selectionEnd, "end");
      text.focus();
      text.dispatchEvent(new Event("input"));
    });
    name.replaceWith(button);
  }
}
