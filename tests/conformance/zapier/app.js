// A Zapier app as docs/integrate/connectors.md describes it.
const crypto = require("node:crypto");
const { version } = require("zapier-platform-core");

const BELLHOP = process.env.BELLHOP;

const keyOf = (run) => {
  const hex = crypto.createHash("sha256").update(run).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

// Without a workspace in the path, it is the token's.
const api = (path) => `${BELLHOP}/api/v1/${path}`;

const me = async (z) => (await z.request(api("auth/me"))).data.data;

const withToken = (request, z, bundle) => {
  if (bundle.authData.token) request.headers.Authorization = `Bearer ${bundle.authData.token}`;
  return request;
};

const withProblem = (response, z) => {
  if (response.status === 401) throw new z.errors.ExpiredAuthError(response.data.detail);
  if (response.status === 429 || response.status === 503) {
    throw new z.errors.ThrottledError(response.data.detail, Number(response.getHeader("Retry-After")));
  }
  if (response.status >= 400) {
    throw new z.errors.Error(`${response.data.title}: ${response.data.detail}`, response.data.title, response.status);
  }
  return response;
};

const newContact = {
  key: "new_contact",
  noun: "Contact",
  display: { label: "New Contact", description: "Triggers when a contact is created." },
  operation: {
    type: "hook",
    performSubscribe: async (z, bundle) => {
      const { data } = await z.request({
        method: "POST",
        url: api("webhooks/endpoints"),
        headers: { Prefer: "wait=25", "Idempotency-Key": keyOf(bundle.targetUrl) },
        body: { address: bundle.targetUrl, events: ["contact.created"], description: "Zapier" },
      });
      return { id: data.data.id, secret: data.secret };
    },
    performUnsubscribe: async (z, bundle) => {
      const url = api(`webhooks/endpoints/${bundle.subscribeData.id}`);
      await z.request({ method: "DELETE", url, headers: { Prefer: "wait=25" } });
      return {};
    },
    perform: (z, bundle) => [bundle.cleanedRequest],
    performList: async (z, bundle) => {
      const params = { kind: "contact.created", limit: 3 };
      const { data } = await z.request({ url: api("events"), params });
      return data.data.map((event) => event.body).filter((body) => body !== null);
    },
    sample: { id: "evt_01kaj5bd40e6rr3f5y2kq0w9xz", kind: "contact.created", data: { contact: {} } },
  },
};

const findContact = {
  key: "find_contact",
  noun: "Contact",
  display: { label: "Find Contact", description: "Finds a contact by its e-mail address." },
  operation: {
    inputFields: [{ key: "email", label: "E-mail", required: true }],
    perform: async (z, bundle) => {
      const params = { email: bundle.inputData.email };
      const { data } = await z.request({ url: api("contacts"), params });
      return data.data;
    },
    sample: { id: "con_01kaj5bd40e6rr3f5y2kq0w9xz", email: "ada@example.com" },
  },
};

const upsertContact = {
  key: "upsert_contact",
  noun: "Contact",
  display: { label: "Create or Update Contact", description: "Creates a contact, or changes the one it matches." },
  operation: {
    inputFields: [
      { key: "email", label: "E-mail", required: true },
      { key: "first_name", label: "First name" },
      { key: "tags", label: "Tags", list: true },
    ],
    perform: async (z, bundle) => {
      const { data } = await z.request({
        method: "POST",
        url: api("contacts"),
        headers: { Prefer: "wait=25", "Idempotency-Key": crypto.randomUUID() },
        body: bundle.inputData,
      });
      return data.data;
    },
    sample: { id: "con_01kaj5bd40e6rr3f5y2kq0w9xz", email: "ada@example.com" },
  },
};

module.exports = {
  version: "1.0.0",
  platformVersion: version,
  authentication: {
    type: "custom",
    fields: [{ key: "token", label: "Token", required: true, type: "password" }],
    test: me,
    connectionLabel: "{{workspace.name}}",
  },
  flags: { cleanInputData: false },
  beforeRequest: [withToken],
  afterResponse: [withProblem],
  triggers: { [newContact.key]: newContact },
  searches: { [findContact.key]: findContact },
  creates: { [upsertContact.key]: upsertContact },
};
