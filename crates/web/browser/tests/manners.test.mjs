// Two languages, the keyboard alone, no script, a narrow screen, and texts that mean harm.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fits, open, picture, quiet, visit } from "../browser.mjs";
import { Place, until } from "../place.mjs";

const HARM = `<script>window.harmed=1</script><img src=x onerror="window.harmed=1">"'>`;

let place;
let browser;
before(async () => {
  place = await Place.make();
  await place.world();
  await place.serve();
  await place.fleet();
  await place.api("POST", "/missions", { from: "2025-01-01", to: "2025-01-05", media_types: ["all"], languages: [["pt"]] });
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

test("the language is the browser's until another is chosen", async () => {
  const page = await visit(browser, { language: "pt-BR" });
  await page.goto(`${place.base}/ui/missions?state=bank`);
  await page.getByRole("heading", { name: "Banco de Missões" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "pt-BR");
  await page.locator("#prefs summary").click();
  await page.getByRole("button", { name: "English" }).click();
  await page.getByRole("heading", { name: "Mission bank" }).waitFor();
  assert.ok(page.url().endsWith("/ui/missions?state=bank"), "one stays where one was");
  await page.goto(`${place.base}/ui`);
  await page.getByRole("link", { name: "Select missions" }).waitFor();
  quiet(page);
});

test("the theme is the system's until another is chosen", async () => {
  const page = await visit(browser, { theme: "dark" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.goto(`${place.base}/ui`);
  const dark = await paper();
  await page.locator("#prefs summary").click();
  await page.getByRole("button", { name: "Light" }).click();
  await page.waitForLoadState();
  assert.notEqual(await paper(), dark);
  assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
  quiet(page);
});

test("missions are found, chosen and queued by the keyboard alone", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui`);
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("next or previous row").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.waitForURL("**/ui/missions");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("1 selected").waitFor();
  const chosen = await page.locator("tbody input[name=id]:checked").getAttribute("value");
  await page.getByRole("button", { name: "Add to queue" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("1 added to the queue").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/ui/missions/${chosen}*`);
  await page.keyboard.press("Tab");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none", "what has the focus is seen");
  quiet(page);
});

test("without a script everything can be done, and the page asks again by itself", async () => {
  const page = await visit(browser, { script: false });
  await page.goto(`${place.base}/ui/missions?state=bank`);
  assert.ok((await page.content()).includes('http-equiv="refresh" content="5"'));
  await page.locator("tbody input[name=id]").first().check();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("heading", { name: "Are you sure?" }).waitFor();
  await page.getByText("1 mission", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Yes, go on" }).click();
  await page.getByText("1 canceled").waitFor();
  await page.getByLabel("All that match the filters").check();
  await page.getByRole("button", { name: "Add to queue" }).click();
  await page.getByRole("heading", { name: "Are you sure?" }).waitFor();
  await page.getByRole("button", { name: "Yes, go on" }).click();
  await page.getByText("added to the queue").waitFor();
  await page.goto(`${place.base}/ui`);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await until("they are completed", async () => {
    await page.goto(`${place.base}/ui`);
    return (await page.locator("a.tile.completed b").textContent()) !== "0";
  }, 60_000);
});

test("a telephone shows all of it without scrolling sideways", async () => {
  const page = await visit(browser, { width: 375, height: 800 });
  for (const path of ["/ui", "/ui/missions", "/ui/missions/new"]) {
    await page.goto(place.base + path);
    await fits(page, path);
  }
  await page.goto(`${place.base}/ui/missions`);
  await picture(page, "missions-narrow");
  await page.locator("tbody a.mono").first().click();
  await page.waitForLoadState();
  await fits(page, "a mission");
  quiet(page);
});

test("texts that mean harm come out as texts", async () => {
  const page = await visit(browser);
  await place.api("POST", "/fleet/proxies", { name: HARM, host: "127.0.0.1", port: 9999 });
  for (const path of [`/ui?said=${encodeURIComponent(HARM)}`, `/ui/missions?q=${encodeURIComponent(HARM)}`, `/ui/missions?state=${encodeURIComponent(HARM)}`, `/ui/missions/${encodeURIComponent(HARM)}`, "/ui/proxies"]) {
    await page.goto(place.base + path);
    assert.equal(await page.evaluate(() => window.harmed), undefined, path);
  }
  quiet(page);
});
