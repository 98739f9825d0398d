// A real browser, and what every page is held to.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { pictures } from "./place.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function open() {
  return chromium.launch({
    executablePath: process.env.LAVRA_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** A page that fails the test when its script or its policy complains. */
export async function visit(browser, options = {}) {
  const { language = "en-US", theme = "light", width = 1280, height = 900, script = true } = options;
  const context = await browser.newContext({
    locale: language,
    colorScheme: theme,
    viewport: { width, height },
    javaScriptEnabled: script,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const text = message.text();
    // While a server is away, or refuses what a test makes wrong, the browser says so.
    if (/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|status of 4\d\d/.test(text)) return;
    page.complaints.push(text);
  });
  page.setDefaultTimeout(15_000);
  return page;
}

export function quiet(page) {
  assert.deepEqual(page.complaints, []);
}

/** What no page may have, by axe-core. */
export async function accessible(page, what) {
  // By the protocol, since the page's policy lets no script in that is not ours.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, { resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations.map((it) => ({ id: it.id, help: it.help, nodes: it.nodes.slice(0, 3).map((node) => node.html + " " + (node.failureSummary ?? "")) }))))`,
    awaitPromise: true,
    returnByValue: true,
  });
  const found = JSON.parse(result.value);
  assert.equal(found.length, 0, `${what}: ${JSON.stringify(found, null, 2)}`);
}

/** Nothing sticks out to the right. */
export async function fits(page, what) {
  const { wide, room, who } = await page.evaluate(() => {
    const room = document.documentElement.clientWidth;
    const who = [...document.querySelectorAll("main *")].filter((it) => it.getBoundingClientRect().right > room + 1 && !it.closest(".scroll, .quiet, pre")).slice(0, 3).map((it) => it.outerHTML.slice(0, 160));
    return { wide: document.documentElement.scrollWidth, room, who };
  });
  assert.ok(wide <= room, `${what} is ${wide} wide in ${room}: ${who.join("\n")}`);
}

export async function picture(page, name) {
  await page.screenshot({ path: join(await pictures(), `${name}.png`), fullPage: true });
}

/** Tests that every page is accessible in both themes and fits a telephone, and takes its pictures. What it walks
 * over, `{ place, browser, pages }`, is asked for when the tests run. */
export function walkOver(site) {
  const walk = async (options, what, look) => {
    const { place, browser, pages } = site();
    const page = await visit(browser, options);
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(place.base + path);
      await look?.(page, name);
      await accessible(page, `${name}, ${what}`);
      await picture(page, `${name}-${what}`);
    }
    quiet(page);
  };
  test("every page is accessible in the light theme", () => walk({ theme: "light" }, "light"));
  test("every page is accessible in the dark theme", () => walk({ theme: "dark", language: "pt-BR" }, "dark"));
  test("every page fits a telephone", () => walk({ width: 375, height: 800, language: "pt-BR" }, "narrow", fits));
}

/** The number on a tile of the overview or the list. */
export async function tile(page, state) {
  const text = await page.locator(`a.tile.${state} b`).textContent();
  return Number(text.replace(/\D/g, ""));
}
