// What a user of the app does, through Zapier's own tester. Prints what the test compares with the receiver's view.
const assert = require("node:assert");
const zapier = require("zapier-platform-core");
const App = require("./app.js");

const { BELLHOP, TOKEN, RECEIVER } = process.env;
const { triggers, searches, creates, authentication } = App;
const tester = zapier.createAppTester(App);
const hook = triggers.new_contact.operation;

async function main() {
  const { results: faults } = await zapier.createAppHandler(App)({ command: "validate" });
  assert.deepStrictEqual(faults, []);

  const authData = { token: TOKEN };
  const me = await tester(authentication.test, { authData });
  assert.strictEqual(me.workspace.name, "Stranger");
  await assert.rejects(tester(authentication.test, { authData: { token: "bhp_wrong" } }));

  const subscribeData = await tester(hook.performSubscribe, { authData, targetUrl: RECEIVER });
  assert.match(subscribeData.secret, /^whsec_/);

  const find = (email) => tester(searches.find_contact.operation.perform, { authData, inputData: { email } });
  const upsert = (inputData) => tester(creates.upsert_contact.operation.perform, { authData, inputData });
  assert.deepStrictEqual(await find("ada@example.com"), []);
  const ada = await upsert({ email: "ada@example.com", first_name: "Ada", tags: ["vip"] });
  const again = await upsert({ email: "ADA@example.com", first_name: "Ada Augusta" });
  assert.deepStrictEqual([again.id, again.first_name, again.tags], [ada.id, "Ada Augusta", ["vip"]]);
  assert.deepStrictEqual((await find("ada@example.com")).map(({ id }) => id), [ada.id]);
  await assert.rejects(find(""), /Leave it out, or give a value/);
  await assert.rejects(upsert({ email: "no address" }), /Validation failed: email: /);

  const samples = await tester(hook.performList, { authData });
  const [event] = await tester(hook.perform, { authData, cleanedRequest: samples[0] });
  assert.deepStrictEqual([event.kind, event.data.contact.id], ["contact.created", ada.id]);

  // Unsubscribing cancels what has not been delivered.
  await delivered(subscribeData.id);
  await tester(hook.performUnsubscribe, { authData, subscribeData });
  await upsert({ email: "eve@example.com" });
  const gone = await get(`webhooks/endpoints/${subscribeData.id}`);
  assert.strictEqual(gone.status, 404);
  console.log(JSON.stringify({ samples, secret: subscribeData.secret }));
}

function get(path) {
  return fetch(`${BELLHOP}/api/v1/${path}`, { headers: { Authorization: `Bearer ${TOKEN}` } });
}

async function delivered(endpoint) {
  for (let tries = 0; tries < 300; tries++) {
    const { data } = await (await get(`webhooks/deliveries?endpoint_id=${endpoint}&status=delivered`)).json();
    if (data.length) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("No webhook was delivered within 30 seconds.");
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
