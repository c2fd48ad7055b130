// The session of a web chat: storage in the browser, sending and fetching. It does not depend on the page. Nothing is
// stored, here or on the server, before the first message or its file.

const STORE = `bellhop-chat:${config.channel}`;
const HOME = `${config.base}/chat/${config.channel}`;
const STREAM = `${config.live}/live/chat`;
const NOTHING = { key: null, token: null, user: null, outbox: [] };
const PAGE = 50;
const POLL = { open: 4000, closed: 30000 };

const random = () => [...crypto.getRandomValues(new Uint8Array(24))].map((each) => each.toString(16).padStart(2, "0")).join("");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

class Session {
  constructor(changed) {
    this.changed = changed;
    this.state = { ...NOTHING };
    this.messages = [];
    this.unread = 0;
    this.hasOlder = false;
    this.identity = null;
    this.isOpen = false;
    this.isOffline = false;
    this.isBlocked = false;
    this.isStreamBlocked = false;
    this.refusals = new Set();
    this.typing = 0;
    this.pause = 1000;
    this.load();
    addEventListener("storage", (event) => {
      if (event.key !== STORE) return;
      const { token } = this.state;
      this.load();
      if (token !== this.state.token) this.begin();
      this.refresh();
      this.changed();
    });
    addEventListener("online", () => this.resume());
    document.addEventListener("securitypolicyviolation", (event) => this.noteRefusal(event));
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stream?.abort() : this.resume()));
    this.resume();
  }

  load() {
    try {
      this.state = { ...NOTHING, ...JSON.parse(localStorage.getItem(STORE)) };
    } catch {
      // Without storage, the session lasts as long as the page.
    }
  }

  save(change) {
    this.load();
    Object.assign(this.state, typeof change === "function" ? change(this.state) : change);
    try {
      localStorage.setItem(STORE, JSON.stringify(this.state));
    } catch {
      // As above.
    }
    this.changed();
  }

  reset() {
    try {
      localStorage.removeItem(STORE);
    } catch {
      // As above.
    }
    this.state = { ...NOTHING };
    this.begin();
    this.changed();
  }

  begin() {
    this.messages = [];
    this.hasOlder = false;
    this.stream?.abort();
  }

  resume() {
    this.pause = 1000;
    this.wake?.();
    this.flush();
    this.refresh();
    this.listen();
  }

  // A Content-Security-Policy refuses all requests of a kind: only the page's author can change that.
  noteRefusal({ disposition, effectiveDirective: directive, blockedURI: address }) {
    const origin = [HOME, STREAM].map((each) => new URL(each).origin).find((each) => address.startsWith(each));
    if (!origin || disposition !== "enforce") return;
    const refusal = `Bellhop: the Content-Security-Policy of this page blocks the chat. Add ${origin} to ${directive}.`;
    if (!this.refusals.has(refusal)) console.error(refusal);
    this.refusals.add(refusal);
    if (directive !== "connect-src") return;
    // Some browsers report only the origin.
    const isOf = (place) => address.startsWith(place) || place.startsWith(address);
    this.isBlocked ||= isOf(HOME);
    this.isStreamBlocked ||= isOf(STREAM);
    this.wake?.();
    this.changed();
  }

  async ask(path, body, headers = {}) {
    if (this.isBlocked) return { ok: false, status: 0 };
    if (this.state.token) headers.Authorization = `Bearer ${this.state.token}`;
    const options = { headers, credentials: "omit", referrerPolicy: "origin" };
    if (body !== undefined) Object.assign(options, { method: "POST", body: body instanceof Blob ? body : JSON.stringify(body) });
    const sent = this.state.token;
    let answer;
    try {
      answer = await fetch(HOME + path, options);
    } catch {
      answer = { ok: false, status: 0 };
    }
    const isAway = answer.status === 0 || answer.status >= 500;
    if (isAway !== this.isOffline) {
      this.isOffline = isAway;
      this.changed();
    }
    // The token has expired: waiting messages begin another session.
    if (answer.status === 401 && sent && sent === this.state.token) {
      this.begin();
      this.save({ token: null, key: null });
    }
    return answer;
  }

  send(text, uploads = [], button = null) {
    const message = { id: random(), text, uploads, button_id: button };
    this.save((state) => ({ key: state.key || random(), outbox: [...state.outbox, message] }));
    this.flush();
  }

  // One tab sends at a time, so that messages keep their order.
  flush() {
    if (!this.state.outbox.length || this.isFlushing) return;
    this.isFlushing = true;
    const work = () => this.work();
    const done = navigator.locks ? navigator.locks.request(STORE, work) : work();
    done.finally(() => {
      this.isFlushing = false;
      // For messages written just after the last check.
      if (this.state.outbox.some((each) => !each.failed)) this.flush();
    });
  }

  async work() {
    for (this.load(); ; this.load()) {
      const next = this.state.outbox.find((each) => !each.failed);
      if (!next) return;
      if (!this.state.key) this.save({ key: random() });
      const { id, text, uploads, button_id } = next;
      const body = { id, text, uploads, button_id, locale: navigator.language };
      if (!this.state.token) body.key = this.state.key;
      if (this.identity) body.user = this.identity;
      const answer = await this.ask("/messages", body);
      if (answer.ok) {
        const { token } = await answer.json();
        this.messages.push({ client_id: id, direction: "in", text, attachments: [], at: new Date().toISOString() });
        this.save((state) => ({
          outbox: state.outbox.filter((each) => each.id !== id),
          user: this.identity?.id || state.user,
          token: token || state.token,
        }));
        this.pause = 1000;
        this.listen();
      } else if (answer.status === 409) {
        this.save({ token: null, key: null, user: null });
      } else if (!this.isBlocked && ([0, 401, 429].includes(answer.status) || answer.status >= 500)) {
        const asked = Number(answer.headers?.get("Retry-After")) * 1000;
        await Promise.race([wait(Math.max(asked || 0, this.pause)), new Promise((wake) => (this.wake = wake))]);
        this.pause = Math.min(this.pause * 2, 30000);
      } else {
        this.save((state) => ({ outbox: state.outbox.map((each) => (each.id === id ? { ...each, failed: true } : each)) }));
      }
    }
  }

  again(id) {
    this.save((state) => ({ outbox: state.outbox.map((each) => (each.id === id ? { ...each, failed: false } : each)) }));
    this.flush();
  }

  // Returns the label of the reason why the file was not sent; nothing if it was.
  async attach(file) {
    if (file.size > config.mostBytes) return "large";
    const key = this.state.key || random();
    const answer = await this.ask("/uploads", file, { "X-File-Name": encodeURIComponent(file.name), "X-Visitor-Key": key });
    if (answer.status === 413) return "large";
    if ([0, 401, 429].includes(answer.status) || answer.status >= 500) return "busy";
    if (!answer.ok) return "refused";
    const { id, token } = await answer.json();
    if (token) this.save({ key, token });
    this.send(null, [id]);
  }

  async refresh() {
    if (!this.state.token) return;
    const { token } = this.state;
    const at = performance.now();
    const answer = await this.ask("/messages");
    if (!answer.ok || token !== this.state.token) return;
    const { messages, unread } = await answer.json();
    // The response to an earlier request may arrive last, and would hide newer messages.
    if (at < this.latest) return;
    this.latest = at;
    this.unread = unread;
    const ids = new Set(messages.flatMap((each) => [each.id, each.client_id]));
    const first = messages[0]?.at;
    // Keeps messages older than the server's page, unless some in between are missing, and unprocessed ones.
    const adjoins = this.messages.some((each) => each.id && ids.has(each.id));
    const older = adjoins ? this.messages.filter((each) => each.id && !ids.has(each.id) && each.at <= first) : [];
    if (!older.length) this.hasOlder = messages.length === PAGE;
    this.messages = [...older, ...messages, ...this.messages.filter((each) => !each.id && !ids.has(each.client_id))];
    if (messages.at(-1)?.direction === "out") this.typing = 0;
    this.changed();
  }

  async older() {
    const first = this.messages.find((each) => each.id);
    if (!this.hasOlder || !first || this.isFetching) return;
    this.isFetching = true;
    const answer = await this.ask(`/messages?before=${first.id}`);
    this.isFetching = false;
    if (!answer.ok || first.id !== this.messages.find((each) => each.id)?.id) return;
    const { messages } = await answer.json();
    this.hasOlder = messages.length === PAGE;
    this.messages = [...messages, ...this.messages];
    this.changed();
  }

  async read() {
    const last = this.messages.findLast((each) => each.direction === "out");
    if (!last || last.status === "read" || last.id === this.wasRead) return;
    this.wasRead = last.id;
    await this.ask("/read", { message_id: last.id });
  }

  tell() {
    if (!this.state.token || Date.now() < this.told + 3000) return;
    this.told = Date.now();
    this.ask("/typing", {});
  }

  // The stream only says that there is something new, so a lost event does no harm.
  async listen() {
    if (this.isListening) return;
    this.isListening = true;
    for (let pause = 1000; this.state.token && !document.hidden && !this.isBlocked; pause = Math.min(pause * 2, 30000)) {
      const began = Date.now();
      await this.follow();
      if (Date.now() - began > 20000) pause = 1000;
      for (const until = Date.now() + pause; Date.now() < until && !document.hidden && this.state.token; ) {
        await this.refresh();
        await wait(Math.min(this.isOpen ? POLL.open : POLL.closed, Math.max(until - Date.now(), 200)));
      }
    }
    this.isListening = false;
  }

  async follow() {
    if (this.isStreamBlocked) return;
    this.stream = new AbortController();
    try {
      const headers = { Authorization: `Bearer ${this.state.token}`, Accept: "text/event-stream" };
      const answer = await fetch(STREAM, { headers, credentials: "omit", signal: this.stream.signal });
      if (!answer.ok) return;
      this.refresh();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ; ) {
        const { done, value } = await reader.read();
        if (done) return;
        const parts = (rest + value).split(/\r?\n\r?\n/);
        rest = parts.pop();
        for (const part of parts) this.hear(/^event: ?(.*)$/m.exec(part)?.[1]);
      }
    } catch {
      // The stream ended, or there is none: `listen` polls meanwhile.
    }
  }

  hear(event) {
    if (event === "typing") {
      this.typing = Date.now() + 6000;
      setTimeout(this.changed, 6100);
      this.changed();
    } else if (event) this.refresh();
  }

  async identify(id, signature) {
    const isOther = this.state.user !== null && this.state.user !== id;
    if (isOther || (!id && this.identity)) this.reset();
    this.identity = id ? { id, signature } : null;
    if (!id || this.state.user === id) return;
    const key = this.state.key || random();
    const answer = await this.ask("/identify", this.state.token ? { user: this.identity } : { user: this.identity, key });
    if (answer.status === 409) {
      this.reset();
      return this.identify(id, signature);
    }
    if (!answer.ok) return;
    const { token } = await answer.json();
    if (token || this.state.token) this.save({ key, token: token || this.state.token, user: id });
    this.resume();
  }
}
