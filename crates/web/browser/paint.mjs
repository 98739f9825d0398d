// How soon a browser paints pages that it sees for the first time: `node paint.mjs BASE PATH…`, as JSON.

import { open } from "./browser.mjs";

const [base, ...paths] = process.argv.slice(2);
const browser = await open();
const told = {};
for (const path of paths) {
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(base + path);
    const time = await page.evaluate(() => new Promise((resolve) => {
      const found = performance.getEntriesByName("first-contentful-paint")[0];
      if (found) resolve(found.startTime);
      else new PerformanceObserver((list, observer) => {
        const entry = list.getEntriesByName("first-contentful-paint")[0];
        if (entry) { observer.disconnect(); resolve(entry.startTime); }
      }).observe({ type: "paint", buffered: true });
    }));
    times.push(time);
    await context.close();
  }
  times.sort((one, other) => one - other);
  told[path] = times[Math.ceil(times.length * 0.95) - 1];
}
await browser.close();
console.log(JSON.stringify(told));
