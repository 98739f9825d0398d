// What happens while it happens: cancel, a server that dies, rows under the pointer, a pause.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open, quiet, tile, visit } from "../browser.mjs";
import { Place, until } from "../place.mjs";

let place;
let browser;
before(async () => {
  place = await Place.make();
  // Scrapes that never end, so that there is something to cancel.
  await place.world("--fleet-faults", '{"jobs": {"hangs": 1.0}}');
  await place.serve();
  await place.fleet(1);
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

test("a mission is canceled while it is scraped, and the worker's stopping is confirmed", async () => {
  await place.api("POST", "/missions", { from: "2025-02-01", to: "2025-02-02", media_types: ["all"], languages: [["pt"]], queue: true });
  const page = await visit(browser);
  await page.goto(`${place.base}/ui`);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await until("one is being scraped", async () => (await tile(page, "scraping")) >= 1);
  await page.goto(`${place.base}/ui/missions?state=scraping`);
  await page.locator("tbody a.mono").first().click();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("told to stop").waitFor();
  await dialog.getByRole("button", { name: "Back" }).click();
  assert.ok(await page.getByRole("button", { name: "Cancel", exact: true }).isVisible(), "nothing was done yet");
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await dialog.getByRole("button", { name: "Yes, go on" }).click();
  await page.locator("#said", { hasText: "1 canceled" }).waitFor();
  await page.locator("h1 .badge.canceled").waitFor();
  await page.getByText("mission_canceled", { exact: true }).waitFor();
  quiet(page);
});

test("a server that was killed under an open page is found again by the page itself", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/missions`);
  await page.locator("#live[data-state=on]").waitFor();
  await page.evaluate(() => { window.still = true; });
  const before = await page.locator("tbody tr").count();
  await place.kill();
  await page.locator("#live[data-state=lost]").waitFor();
  await place.serve();
  await page.locator("#live[data-state=on]").waitFor({ timeout: 30_000 });
  await place.api("POST", "/missions", { from: "2025-03-01", to: "2025-03-03", media_types: ["all"], languages: [["pt"]] });
  await until("the new missions are on the page", async () => (await page.locator("tbody tr").count()) === before + 3);
  assert.ok(await page.evaluate(() => window.still), "the page was not loaded anew");
  quiet(page);
});

test("no row moves under the pointer or the focus, and what has changed can be had", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/missions?state=bank`);
  const first = page.locator("tbody tr").first();
  const key = await first.getAttribute("data-key");
  await first.hover();
  await place.api("POST", "/missions", { from: "2025-04-01", to: "2025-04-01", media_types: ["all"], languages: [["pt"]] });
  await page.locator("#held:not([hidden])").waitFor();
  assert.equal(await page.locator("tbody tr").first().getAttribute("data-key"), key);
  await page.mouse.move(5, 5);
  const isNew = async () => (await page.locator("tbody tr").first().getAttribute("data-key")) !== key;
  await until("the new row is there", isNew);
  assert.ok(await page.locator("#held").isHidden());

  const second = await page.locator("tbody tr").first().getAttribute("data-key");
  await page.locator("tbody a.mono").first().focus();
  await place.api("POST", "/missions", { from: "2025-04-02", to: "2025-04-02", media_types: ["all"], languages: [["pt"]] });
  await page.locator("#held:not([hidden])").waitFor();
  assert.equal(await page.locator("tbody tr").first().getAttribute("data-key"), second);
  await page.locator("#held").click();
  await until("it comes when it is asked for", async () => (await page.locator("tbody tr").first().getAttribute("data-key")) !== second);
  assert.ok(await page.locator("#held").isHidden());
  quiet(page);
});

test("a pause holds the page as it is, and what was ticked stays ticked", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/missions?state=bank`);
  await page.locator("#live[data-state=on]").waitFor();
  await page.locator("#live").click();
  await page.locator("#live[data-state=paused]").waitFor();
  const box = page.locator("tbody input[name=id]").first();
  await box.check();
  const ticked = await box.getAttribute("value");
  const before = await tile(page, "bank");
  await place.api("POST", "/missions", { from: "2025-05-01", to: "2025-05-01", media_types: ["all"], languages: [["pt"]] });
  await page.waitForTimeout(1500);
  assert.equal(await tile(page, "bank"), before, "paused");
  await page.locator("#live").click();
  await until("it goes on", async () => (await tile(page, "bank")) === before + 1);
  assert.ok(await page.locator(`input[value="${ticked}"]`).isChecked());
  quiet(page);
});
