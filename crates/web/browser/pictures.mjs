// The pictures of the documents, in each of their languages: an empty file, the bank, a fleet at work, a mission.
//
//     cargo xtask pictures

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { open, visit } from "./browser.mjs";
import { Place, until } from "./place.mjs";

const documents = process.argv[2];
const LANGUAGES = { "en-US": "pictures", "pt-BR": "pt-BR/pictures" };

async function take(browser, language, directory) {
  await mkdir(directory, { recursive: true });
  const place = await Place.make();
  try {
    await place.world();
    await place.serve();
    const page = await visit(browser, { language });
    const picture = async (name, path) => {
      await page.goto(place.base + path);
      await page.locator('#live[data-state="on"]').waitFor();
      await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
    };
    const counts = async () => (await place.api("GET", "/fleet")).counts;
    await picture("first-steps", "/ui");
    await place.fleet();
    await place.run(["mission", "add", "--from", "2025-01-01", "--to", "2025-01-08", "--language", "pt", "--media-type", "video"]);
    await picture("bank", "/ui/missions?state=bank");
    await place.run(["mission", "add", "--from", "2025-02-01", "--to", "2025-03-20", "--language", "pt", "--media-type", "all", "--queue"]);
    await place.api("POST", "/fleet/start");
    await until("some are completed", async () => (await counts()).completed >= 12, 120_000);
    await picture("overview", "/ui");
    // The first one also has the session in its timeline.
    const { items } = await place.api("GET", "/missions?status=completed&limit=100");
    const first = items.reduce((one, other) => (one.finished_at < other.finished_at ? one : other));
    await picture("mission", `/ui/missions/${first.id}`);
    await page.context().close();
  } finally {
    await place.end();
  }
}

const browser = await open();
try {
  for (const [language, folder] of Object.entries(LANGUAGES)) await take(browser, language, join(documents, folder));
} finally {
  await browser.close();
}
