// The pages of the fleet, the audit, the settings and help: accessible in both themes, fit for a telephone,
// and driven by clicks.

import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, open, picture, quiet, visit, walkOver } from "../browser.mjs";
import { Place, until } from "../place.mjs";

let place;
let browser;
let pages;
before(async () => {
  place = await Place.make();
  await place.world();
  await place.serve();
  await place.fleet();
  await place.api("POST", "/fleet/workers", { name: "worker-away", url: "http://127.0.0.1:1", api_key: "k", storage_domain: "s.example" });
  await place.api("POST", "/fleet/writers", { name: "writer-2", url: "http://127.0.0.1:1", api_key: "k" });
  await place.api("PUT", "/fleet/proxies/proxy-br-2", { active: false });
  await place.api("POST", "/missions", { from: "2025-01-01", to: "2025-01-20", media_types: ["all", "video"], languages: [["pt"]], queue: true });
  await place.api("POST", "/webhooks", { name: "ops", url: "http://127.0.0.1:1/x", secret: "a-long-random-text", events: ["mission.failed"] });
  await place.run(["key", "create", "grafana", "--role", "viewer"]);
  await place.api("POST", "/fleet/start");
  await until("some are completed", async () => (await place.api("GET", "/fleet")).counts.completed >= 8, 60_000);
  const { items } = await place.api("GET", "/missions?status=completed&limit=1");
  const workers = (await place.api("GET", "/fleet/workers")).items;
  pages = {
    workers: "/ui/workers",
    "workers-none": "/ui/workers?state=inactive",
    worker: `/ui/workers/${workers[0].id}`,
    "worker-new": "/ui/workers/new",
    "worker-edit": `/ui/workers/${workers[0].id}/edit`,
    proxies: "/ui/proxies",
    writers: "/ui/writers",
    audit: "/ui/audit",
    "audit-narrowed": "/ui/audit?event=session_failed&event=mission_failed",
    "audit-timeline": `/ui/audit/timeline?mission=${items[0].id}`,
    "audit-failures": "/ui/audit/failures",
    "audit-workers": "/ui/audit/workers",
    "audit-proxies": "/ui/audit/proxies",
    settings: "/ui/settings",
    keys: "/ui/keys",
    webhooks: "/ui/webhooks",
    "webhook-new": "/ui/webhooks/new",
    help: "/ui/help",
    errors: "/ui/help/errors",
    login: "/ui/login",
  };
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

walkOver(() => ({ place, browser, pages }));

test("a proxy is added, tested, changed and removed by clicks", async () => {
  // A run would give the new proxy to a worker at once, and what is in use stays.
  await place.api("POST", "/fleet/stop");
  const isFree = (proxy) => !proxy.in_use_by_worker_id;
  await until("no proxy is in use", async () => (await place.api("GET", "/fleet/proxies")).items.every(isFree), 60_000);
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/proxies`);
  await page.getByRole("link", { name: "Add a proxy" }).click();
  await page.getByLabel("Name").fill("by hand");
  await page.getByLabel("Host").fill("127.0.0.1");
  await page.getByLabel(/^Port/).fill("1");
  await page.getByLabel(/^Password/).fill("not-shown");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("status").filter({ hasText: "Added: by hand" }).waitFor();
  await page.getByRole("button", { name: "Test by hand" }).click();
  await page.getByText(/by hand did not answer/).waitFor();
  await page.getByRole("button", { name: "Deactivate by hand" }).click();
  await page.getByRole("button", { name: "Reactivate by hand" }).waitFor();
  await page.getByRole("link", { name: "Edit by hand" }).click();
  await page.getByLabel("Name").fill("otherwise");
  assert.equal(await page.getByLabel(/^Password/).inputValue(), "");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Remove otherwise" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
  await page.getByRole("link", { name: "otherwise", exact: true }).waitFor();
  await page.getByRole("button", { name: "Remove otherwise" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Yes, go on" }).click();
  await page.getByText("Removed: otherwise").waitFor();
  assert.equal(await page.getByRole("link", { name: "otherwise", exact: true }).count(), 0);
  quiet(page);
});

test("a worker's state changes under an open page", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/workers`);
  const row = page.locator("tr", { hasText: "worker-away" });
  await place.api("PUT", "/fleet/workers/worker-away", { active: false });
  await row.getByText(/Deactivated|Finishes what it does/).first().waitFor();
  quiet(page);
});

test("the log is narrowed and its error code leads to what it means", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/audit`);
  await page.getByText("Filters").click();
  await page.getByLabel("session_failed").check();
  await page.getByRole("button", { name: "Filter" }).click();
  await page.locator("tbody td a code").first().waitFor();
  const events = await page.locator("tbody .badge").allTextContents();
  assert.deepEqual([...new Set(events)], ["session_failed"]);
  const code = await page.locator("tbody td a code").first().textContent();
  await page.locator("tbody td a code").first().click();
  await page.locator(`article#${code}`).getByText("Whose fault").waitFor();
  quiet(page);
});

test("settings are saved, and what is wrong is said where it was typed", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/settings`);
  await page.getByLabel(/^Missions per session/).fill("7");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  assert.equal((await place.api("GET", "/fleet/settings")).session_limit, 7);
  quiet(page);
});

test("a key is made, seen once, and signs in where one is needed", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/keys`);
  await page.getByLabel("Name").fill("ana");
  await page.getByLabel("Role").selectOption("operator");
  await page.getByRole("button", { name: "Make a key" }).click();
  const key = await page.getByLabel("API key").inputValue();
  await accessible(page, "a key, once");
  await picture(page, "key-once");
  assert.match(key, /^lavra_/);
  assert.ok(!page.url().includes(key));
  await page.getByRole("link", { name: "I have copied it" }).click();
  assert.ok(!(await page.content()).includes(key));
  quiet(page);

  await place.kill("SIGTERM");
  await appendFile(join(place.directory, "lavra.toml"), "[web]\nrequire_key = true\n");
  await place.serve();
  const person = await visit(browser);
  await person.goto(`${place.base}/ui/workers`);
  assert.equal(new URL(person.url()).pathname, "/ui/login");
  await person.getByLabel("API key").fill("lavra_wrong");
  await person.getByRole("button", { name: "Sign in" }).click();
  await person.getByRole("alert").waitFor();
  await accessible(person, "a wrong key");
  await picture(person, "login-wrong");
  await person.getByLabel("API key").fill(key);
  await person.getByRole("button", { name: "Sign in" }).click();
  await person.getByRole("heading", { name: "Workers" }).waitFor();
  assert.equal(await person.getByRole("link", { name: "Add a worker" }).count(), 0, "an operator adds none");
  await accessible(person, "workers, an operator");
  await person.goto(`${place.base}/ui/settings`);
  await accessible(person, "settings, an operator");
  await person.locator("#prefs summary").click();
  await person.getByRole("button", { name: "Sign out" }).click();
  await person.getByLabel("API key").waitFor();
  quiet(person);
});
