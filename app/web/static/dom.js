// For all scripts: finds and makes elements, and fetches pages.

export const byId = (id) => document.getElementById(id);
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Makes an element. Attributes and children that are null are left out.
export const made = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children.filter((each) => each !== null));
  return element;
};
export const textButton = (text, act) => {
  const button = made("button", { type: "button", class: "small" }, text);
  button.addEventListener("click", act);
  return button;
};

export const parsed = (html) => new DOMParser().parseFromString(html, "text/html");
// Fetches a page. Fails if the server refuses it, or redirects, as it does if the session has ended.
export const page = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) throw new Error(`${response.status}`);
  return parsed(await response.text());
};
