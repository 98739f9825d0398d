// The README's tour, "Mission Control in five steps", as it is written there.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { open, quiet, tile, visit } from "../browser.mjs";
import { Place, until } from "../place.mjs";

let place;
let browser;
before(async () => {
  place = await Place.make();
  await place.world();
  await place.serve();
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

test("the tour of the README leads to a completed mission", async () => {
  const readme = await readFile(new URL("../../../../README.md", import.meta.url), "utf8");
  const tour = readme.split("## Mission Control in five steps")[1].split("\n## ")[0].replace(/\s+/g, " ");
  const says = (...texts) => texts.forEach((text) => assert.ok(tour.includes(text), `the README does not say ${text}`));
  const at = (path) => `http://127.0.0.1:${place.fleetPort}/${path}`;
  const page = await visit(browser);
  const go = (name) => page.getByRole("navigation").getByRole("link", { name, exact: true }).first().click();

  says("1. Open the page. The overview says what is missing.");
  await page.goto(place.base);
  await page.getByRole("heading", { name: "First steps" }).waitFor();

  says("2. *Workers*: add `worker-0` at `http://127.0.0.1:18091/worker/0`, with the same address as its storage domain and the key `worker-key`.");
  await go("Workers");
  await page.getByRole("link", { name: "Add a worker" }).first().click();
  await page.getByLabel("Name").fill("worker-0");
  await page.getByLabel("URL").fill(at("worker/0"));
  await page.getByLabel(/^Storage domain/).fill(at("worker/0"));
  await page.getByLabel("API key").fill("worker-key");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByText("Added: worker-0").waitFor();
  says("*Proxies*: add `proxy-0` and `proxy-1` at `127.0.0.1`, ports 9000 and 9001.");
  for (const [name, port] of [["proxy-0", "9000"], ["proxy-1", "9001"]]) {
    await go("Proxies");
    await page.getByRole("link", { name: "Add a proxy" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Host").fill("127.0.0.1");
    await page.getByLabel(/^Port/).fill(port);
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByText(`Added: ${name}`).waitFor();
  }
  says("*Writers*: add `writer-0` at `http://127.0.0.1:18091/writer/0` with the key `writer-key`.");
  await go("Writers");
  await page.getByRole("link", { name: "Add a writer" }).first().click();
  await page.getByLabel("Name").fill("writer-0");
  await page.getByLabel("URL").fill(at("writer/0"));
  await page.getByLabel("API key").fill("writer-key");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByText("Added: writer-0").waitFor();

  says("3. *Missions*, *New missions*: choose some days and a language, then *Make missions*. They are now in the bank. Tick some of them, then *Add to queue*.");
  await go("Missions");
  await page.getByRole("link", { name: "New missions" }).first().click();
  await page.getByLabel("From", { exact: true }).fill("2025-01-01");
  await page.getByLabel("To", { exact: true }).fill("2025-01-04");
  await page.getByLabel("Languages").fill("pt");
  await page.getByRole("button", { name: "Make missions" }).click();
  await page.getByRole("heading", { name: "Mission bank" }).waitFor();
  for (const place of [0, 1]) await page.locator("tbody input[name=id]").nth(place).check();
  await page.getByRole("button", { name: "Add to queue" }).click();
  await page.getByText("2 added to the queue").waitFor();

  says("4. *Overview*, *Start*. The counts update by themselves");
  await go("Overview");
  await page.evaluate(() => { window.still = true; });
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("The run has started.").waitFor();
  await page.evaluate(() => { window.still = true; });
  await until("both are completed on the page", async () => (await tile(page, "completed")) === 2, 60_000);
  assert.ok(await page.evaluate(() => window.still), "the page was not loaded anew");

  says("5. *Completed*, then one of the missions: its timeline by phase, with each attempt, worker and proxy.");
  await page.getByRole("link", { name: /Completed/ }).first().click();
  await page.locator("tbody a.mono").first().click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  assert.equal(await page.locator(".lane svg").count(), 3, "session, scrape and write");
  const main = await page.locator("main").textContent();
  for (const text of ["worker-0", "proxy-"]) assert.ok(main.includes(text), `the mission's page does not name ${text}`);

  quiet(page);
});
