// The widget of a web chat: a button, and a panel with the messages. Other people's text is only ever set as text.

const script = document.currentScript;
const labels = {
  open: "Open the chat",
  close: "Close the chat",
  messages: "Messages",
  write: "Your message",
  send: "Send",
  attach: `Attach a file, up to ${config.mostBytes / 2 ** 20} MiB`,
  older: "Show older messages",
  answers: "Answers",
  you: "You",
  them: config.name,
  typing: "is writing …",
  open_now: "We are here now",
  back: "Away. Back",
  sent: "Sent",
  read: "Read",
  unread: "unread",
  waiting: "Waiting to be sent",
  failed: "Not sent",
  again: "Try again",
  offline: "No connection. Messages are sent once it is back.",
  refused: "The file could not be sent.",
  large: "The file is too large. MiB at most:",
  busy: "The file could not be sent now. Try again in a few minutes.",
  left: "Characters left:",
  long: "Characters too many:",
  blocked: "The chat does not work on this page. Nothing can be sent from here.",
  ...JSON.parse(script?.dataset.labels || "{}"),
};

function make(tag, fields = {}, ...inside) {
  const { attributes = {}, ...properties } = fields;
  const made = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

function icon(path) {
  const space = "http://www.w3.org/2000/svg";
  const drawn = document.createElementNS(space, "svg");
  drawn.setAttribute("viewBox", "0 0 24 24");
  drawn.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", path);
  drawn.append(line);
  return drawn;
}

const named = (label, more = {}) => ({ type: "button", attributes: { "aria-label": label, ...more } });
const host = make("bellhop-chat");
const root = host.attachShadow({ mode: "open" });
const style = new CSSStyleSheet();
style.replaceSync(css + (config.look || ""));
// Not a style element, which a shop's Content-Security-Policy might refuse.
root.adoptedStyleSheets = [style];

const badge = make("span", { className: "badge", hidden: true });
const launcher = make(
  "button",
  { ...named(labels.open, { "aria-expanded": "false", "aria-haspopup": "dialog" }), className: "launcher" },
  icon("M21 12a8 8 0 0 1-8 8H4l2-3a8 8 0 1 1 15-5z"),
  badge,
);
const list = make("ol");
const older = make("button", { type: "button", className: "older", hidden: true, textContent: labels.older });
const chips = make("div", { className: "chips", hidden: true, attributes: { role: "group", "aria-label": labels.answers } });
const greeting = make("p", { className: "greeting", dir: "auto", textContent: config.greeting || "" });
const receipt = make("div", { className: "receipt", attributes: { "aria-live": "off" } });
const log = make("div", { className: "log", tabIndex: 0, attributes: { role: "log", "aria-live": "polite", "aria-label": labels.messages } }, older, greeting, list, receipt, chips);
const status = make("div", { className: "status", attributes: { role: "status" } });
const text = make("textarea", { rows: 1, attributes: { "aria-label": labels.write, "aria-describedby": "left", placeholder: labels.write, dir: "auto" } });
const left = make("div", { id: "left", className: "left", hidden: true });
const file = make("input", { type: "file", className: "unseen", attributes: { "aria-label": labels.attach } });
const clip = make("span", {}, icon("M20 11l-8 8a5 5 0 0 1-7-7l9-9a3.500 3.500 0 0 1 5 5l-9 9a2 2 0 0 1-3-3l8-8"));
const attach = make("label", {}, file, clip);
const send = make("button", { ...named(labels.send), type: "submit", className: "send" }, icon("M4 12l16-8-6 16-3-7z"));
const form = make("form", {}, attach, text, send);
const close = make("button", named(labels.close), icon("M6 6l12 12M18 6L6 18"));
const hours = make("small");
const header = make("header", {}, make("div", {}, make("h2", { textContent: config.name }), hours), close);
if (config.picture) {
  const picture = make("img", { src: config.picture, alt: "", referrerPolicy: "no-referrer", onerror: () => picture.remove() });
  header.prepend(picture);
}
const panel = make("div", { className: "panel", hidden: true, attributes: { role: "dialog", "aria-label": config.name } }, header, log, status, left, form);
root.append(make("div", { className: "chat" }, launcher, panel));

const shown = new Map();
let problem = "";
let offered = "[]";
const session = new Session(() => render());

function render() {
  const waiting = session.state.outbox.map((each) => ({ ...each, client_id: each.id, id: null, direction: "in", isWaiting: true }));
  const all = [...session.messages, ...waiting.filter((each) => !session.messages.some((one) => one.client_id === each.client_id))];
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  const fromEnd = log.scrollHeight - log.scrollTop;
  const first = list.firstChild;
  const keys = new Set();
  let before = null;
  for (const each of all) {
    const key = each.client_id || each.id;
    keys.add(key);
    const look = JSON.stringify([each.text, each.attachments, each.isWaiting, each.failed, session.isBlocked]);
    let item = shown.get(key);
    if (item?.look !== look) {
      const made = draw(each);
      item?.node.replaceWith(made);
      item = { look, node: made };
      shown.set(key, item);
    }
    // Only new or misplaced messages are touched, because screen readers read whatever is touched.
    if ((before ? before.nextSibling : list.firstChild) !== item.node) list.insertBefore(item.node, before ? before.nextSibling : list.firstChild);
    before = item.node;
  }
  for (const [key, { node }] of shown) {
    if (!keys.has(key)) {
      node.remove();
      shown.delete(key);
    }
  }
  const last = all.at(-1);
  receipt.textContent = last?.direction !== "in" || last.isWaiting ? "" : last.id && !session.unread ? labels.read : labels.sent;
  greeting.hidden = !config.greeting || session.hasOlder;
  hours.textContent = opening();
  offer(all);
  if (older.hidden === session.hasOlder) {
    if (root.activeElement === older) log.focus();
    older.hidden = !session.hasOlder;
  }
  if (isAtEnd) log.scrollTop = log.scrollHeight;
  else if (first?.isConnected && first !== list.firstChild) log.scrollTop = log.scrollHeight - fromEnd;
  const unread = all.filter((each) => each.direction === "out" && each.status !== "read").length;
  const isSeen = session.isOpen && !document.hidden;
  badge.hidden = isSeen || !unread;
  badge.textContent = unread;
  launcher.setAttribute("aria-label", badge.hidden ? labels.open : `${labels.open}, ${unread} ${labels.unread}`);
  if (session.isBlocked && root.activeElement && form.contains(root.activeElement)) log.focus();
  form.hidden = session.isBlocked;
  const note = session.isBlocked ? labels.blocked : session.isOffline && session.state.outbox.length ? labels.offline : session.typing > Date.now() ? `${labels.them} ${labels.typing}` : problem;
  if (status.textContent !== note) status.textContent = note;
  if (isSeen && unread) session.read();
}

// Whether support is open, or when it opens, in the visitor's local time. Nothing after the script's last hours.
function opening() {
  const now = Date.now() / 60000;
  const [begins] = config.hours?.find(([, ends]) => ends > now) || [];
  if (!begins) return "";
  return begins <= now ? labels.open_now : `${labels.back} ${new Date(begins * 60000).toLocaleString([], { weekday: "long", hour: "numeric", minute: "2-digit" })}`;
}

// The buttons of the latest message that has some, until the visitor writes.
function offer(all) {
  const last = all.findLast((each) => each.direction === "in" || each.buttons?.length);
  const buttons = (!session.isBlocked && last?.buttons) || [];
  const look = JSON.stringify(buttons);
  if (look === offered) return;
  offered = look;
  const hadFocus = chips.contains(root.activeElement);
  chips.replaceChildren(...buttons.map(({ id, label }) => make("button", { type: "button", dir: "auto", textContent: label, onclick: () => session.send(label, [], id) })));
  chips.hidden = !buttons.length;
  if (hadFocus) text.focus();
}

function draw(message) {
  const isOwn = message.direction === "in";
  const item = make("li", { className: isOwn ? "own" : "" }, make("span", { className: "unseen", textContent: `${isOwn ? labels.you : labels.them}: ` }));
  if (message.text) item.append(linked(message.text));
  for (const each of message.attachments || []) if (each.address) item.append(attachment(each));
  if (message.failed) {
    item.append(make("small", { textContent: `${labels.failed}. ` }));
    if (!session.isBlocked) item.append(make("button", { type: "button", textContent: labels.again, onclick: () => session.again(message.client_id) }));
  } else if (message.isWaiting) {
    item.classList.add("waiting");
    item.append(make("small", { className: "unseen", textContent: ` (${labels.waiting})` }));
  } else item.append(sentAt(new Date(message.at)));
  return item;
}

function sentAt(at) {
  const isToday = at.toDateString() === new Date().toDateString();
  return make("time", { dateTime: at.toISOString(), title: at.toLocaleString(), textContent: at.toLocaleString([], { dateStyle: isToday ? undefined : "medium", timeStyle: "short" }) });
}

// Only plain ASCII becomes a link, so that no letter can imitate another.
function linked(content) {
  const paragraph = make("p", { dir: "auto" });
  for (const part of content.split(/(https?:\/\/[!-~]+)/)) {
    if (!/^https?:\/\/[!-~]+$/.test(part)) paragraph.append(part);
    else paragraph.append(make("a", { href: part, textContent: part, target: "_blank", rel: "noopener noreferrer nofollow" }));
  }
  return paragraph;
}

function attachment({ address, name, content_type: type }) {
  const link = make("a", { href: address, target: "_blank", rel: "noopener noreferrer" });
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(type);
  link.append(isImage ? make("img", { src: address, alt: name || type, loading: "lazy" }) : make("bdi", { textContent: name || type }));
  return link;
}

function toggle(isOpen) {
  session.isOpen = isOpen;
  panel.hidden = !isOpen;
  launcher.hidden = isOpen;
  launcher.setAttribute("aria-expanded", isOpen);
  render();
  if (isOpen) {
    log.scrollTop = log.scrollHeight;
    session.refresh();
  }
  (isOpen ? (form.hidden ? log : text) : launcher).focus();
}

async function showOlder() {
  if (!session.hasOlder) return;
  // Otherwise screen readers would read the whole page of messages aloud.
  log.setAttribute("aria-live", "off");
  await session.older();
  setTimeout(() => log.setAttribute("aria-live", "polite"), 1000);
}

older.onclick = showOlder;
log.onscroll = () => log.scrollTop < 60 && showOlder();
launcher.onclick = () => toggle(true);
close.onclick = () => toggle(false);
root.addEventListener("keydown", (event) => {
  // The page's own shortcuts must not react to keys typed here.
  event.stopPropagation();
  if (event.key === "Escape" && session.isOpen) toggle(false);
  if (event.key === "Enter" && event.target === text && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
// Counts characters as the server does: an emoji is one.
const excess = () => [...text.value.trim()].length - config.mostCharacters;
function measure() {
  const over = excess();
  left.hidden = over <= -200;
  left.textContent = over > 0 ? `${labels.long} ${over}` : `${labels.left} ${-over}`;
  text.setAttribute("aria-invalid", over > 0);
  if (over <= 0 && problem) tell("");
}
function tell(sentence) {
  problem = sentence;
  render();
}
text.oninput = () => {
  session.tell();
  measure();
};
form.onsubmit = (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (!said) return;
  // The text stays, with the reason below it.
  if (excess() > 0) return tell(labels.failed);
  text.value = problem = "";
  measure();
  session.send(said);
  log.scrollTop = log.scrollHeight;
  text.focus();
};
file.onchange = async () => {
  const [chosen] = file.files;
  const reason = chosen && (await session.attach(chosen));
  file.value = "";
  tell(reason === "large" ? `${labels.large} ${config.mostBytes / 2 ** 20}` : reason ? labels[reason] : "");
};
document.addEventListener("visibilitychange", () => render());

window.Bellhop = {
  identify: (user, signature) => session.identify(user || null, signature),
  open: () => toggle(true),
  close: () => toggle(false),
};
// Placed beside the body, so that the body's transforms and filters do not move fixed elements.
const place = () => {
  host.dir = document.body.dir;
  document.documentElement.append(host);
};
if (document.body) place();
else addEventListener("DOMContentLoaded", place);
render();
if (script?.dataset.user) window.Bellhop.identify(script.dataset.user, script.dataset.signature);
dispatchEvent(new CustomEvent("bellhop:ready"));
