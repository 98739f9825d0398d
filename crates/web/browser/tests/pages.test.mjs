// Every page, in both themes, is accessible, fits a telephone, and has its picture taken.

import { after, before, test } from "node:test";
import { open, walkOver } from "../browser.mjs";
import { Place, until } from "../place.mjs";

let place;
let browser;
let pages;
before(async () => {
  place = await Place.make();
  await place.world();
  await place.serve();
  await place.fleet();
  await place.api("POST", "/missions", { from: "2025-01-01", to: "2025-01-12", media_types: ["all", "video"], languages: [["pt"], ["en", "es"]], queue: true });
  await place.api("POST", "/missions", { from: "2025-02-01", to: "2025-02-08", media_types: ["image"], languages: [["pt"]] });
  await place.api("POST", "/fleet/start");
  await until("some are completed", async () => (await place.api("GET", "/fleet")).counts.completed >= 8, 60_000);
  const { items } = await place.api("GET", "/missions?status=completed&limit=1");
  pages = {
    overview: "/ui",
    missions: "/ui/missions",
    bank: "/ui/missions?state=bank",
    "missions-none": "/ui/missions?state=failed",
    "missions-new": "/ui/missions/new",
    mission: `/ui/missions/${items[0].id}`,
    "not-found": "/ui/nowhere",
    "no-such-mission": "/ui/missions/mis_0",
  };
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

walkOver(() => ({ place, browser, pages }));
