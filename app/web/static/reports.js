// Reports: offers the reader's own time zone, which only the browser knows.
"use strict";

for (const field of document.querySelectorAll("select[data-own-zone]")) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = [...field.options].find((option) => (option.value || option.text) === zone);
  if (!known) field.add(new Option(zone));
}
