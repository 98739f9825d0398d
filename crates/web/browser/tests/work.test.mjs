// Extractions, tasks, dead letters and schedules: accessible in both themes, fit for a telephone, driven by
// clicks, and filling while one looks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open, quiet, visit, walkOver } from "../browser.mjs";
import { Place, until } from "../place.mjs";

let place;
let browser;
let pages;

const ended = (id) => until(`${id} has ended`, async () => {
  const task = await place.api("GET", `/tasks/${id}`);
  return /COMPLETED|FAILED|CANCELLED/.test(task.status) && task;
}, 90_000);
const completed = async (id) => {
  const task = await ended(id);
  assert.equal(task.status, "COMPLETED", JSON.stringify(task));
};

before(async () => {
  place = await Place.make();
  await place.world("--fault", "latency.fixed_ms=5");
  await place.serve("--demo-types");
  const run = await place.api("POST", "/extractions/pncp:run", { from: "2023-11", to: "2024-02", endpoints: ["contratos_publicacao", "atas_atualizacao", "contratacoes_publicacao"], base_url: place.pncp });
  await completed(run.id);
  // More months than a telephone is wide.
  const before = await place.api("POST", "/extractions/pncp:run", { from: "2023-05", to: "2023-10", endpoints: ["atas_atualizacao"], base_url: place.pncp });
  await completed(before.id);
  const failed = await place.api("POST", "/tasks", { type: "count", payload: { to: 3, fail_attempts: 9 }, max_retries: 0 });
  await ended(failed.id);
  const waits = await place.api("POST", "/tasks", { type: "count", payload: { to: 3 }, delay_seconds: 7200 });
  const audit = await place.api("POST", "/extractions/pncp:audit", {});
  await completed(audit.id);
  await place.api("PUT", "/schedules/nightly", { type: "count", cron: "17 3 * * *", payload: { to: 3 } });
  const task = "/ui/extractions/pncp/contratos_publicacao_2024-01-01";
  pages = {
    sources: "/ui/extractions",
    source: "/ui/extractions/pncp",
    "source-narrowed": "/ui/extractions/pncp?status=failed",
    "source-order": "/ui/extractions/pncp/order",
    extraction: task,
    "extraction-page": `${task}/pages/1`,
    "extraction-new": "/ui/extractions/new",
    "extraction-other": "/ui/extractions/new?other=yes",
    tasks: "/ui/tasks",
    "tasks-none": "/ui/tasks?status=cancelled",
    task: `/ui/tasks/${run.id}`,
    "task-failed": `/ui/tasks/${failed.id}`,
    "task-waiting": `/ui/tasks/${waits.id}`,
    "task-audit": `/ui/tasks/${audit.id}`,
    "task-new": "/ui/tasks/new",
    "dead-letters": "/ui/dead-letters",
    schedules: "/ui/schedules",
    "schedule-new": "/ui/schedules/edit",
    "schedule-edit": "/ui/schedules/edit?name=nightly",
  };
  browser = await open();
});
after(async () => {
  await browser?.close();
  await place?.end();
});

walkOver(() => ({ place, browser, pages }));

test("on a telephone the heat map scrolls in its own box", async () => {
  const page = await visit(browser, { width: 375, height: 800, language: "pt-BR" });
  await page.goto(place.base + pages.source);
  const box = page.locator(".heat");
  const endpoint = page.locator(".heat tbody th").first();
  const before = await endpoint.boundingBox();
  assert.ok(await box.evaluate((it) => { it.scrollLeft = 80; return it.scrollLeft; }) > 0, "there is more than fits");
  assert.equal((await endpoint.boundingBox()).x, before.x, "the names stay");
  quiet(page);
});

test("an extraction is planned, started, and its heat map fills while one looks", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/extractions/pncp`);
  await page.getByRole("link", { name: "New extraction" }).click();
  await page.getByLabel("From").fill("2022-01");
  await page.getByLabel("To", { exact: true }).fill("2022-12");
  await page.getByLabel("contratos_publicacao", { exact: true }).check();
  assert.equal(await page.getByLabel("Another address of the same API").inputValue(), place.pncp, "where the last one went");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await page.getByText("12 requests to the source, at least").waitFor();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("The extraction has started.").waitFor();
  await page.evaluate(() => { window.still = true; });
  const cell = page.getByRole("link", { name: /^contratos_publicacao 2022-12: Complete, / });
  await cell.waitFor({ timeout: 60_000 });
  assert.ok(await page.evaluate(() => window.still), "the page was not loaded anew");
  await cell.click();
  await page.getByText("exact: the records add up").first().waitFor();
  await page.getByRole("link", { name: "1", exact: true }).click();
  await page.getByText("\"numeroControlePNCP\"").first().waitFor();
  quiet(page);
});

test("a month is fetched again only when it is asked for twice", async () => {
  const page = await visit(browser);
  await page.goto(place.base + pages.extraction);
  await page.getByRole("button", { name: "Refresh it" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Back" }).click();
  assert.equal(await page.locator("#said").count(), 0);
  await page.getByRole("button", { name: "Refresh it" }).click();
  await dialog.getByRole("button", { name: "Yes, go on" }).click();
  await page.getByText("The extraction has started.").waitFor();
  await page.locator("dd", { hasText: /^2$/ }).first().waitFor({ timeout: 60_000 });
  quiet(page);
});

test("a task is made, watched, cancelled and retried by clicks", async () => {
  const page = await visit(browser);
  await page.goto(`${place.base}/ui/tasks`);
  await page.getByRole("link", { name: "New task" }).click();
  await page.getByLabel("Type", { exact: true }).selectOption("count");
  await page.getByLabel("Input (JSON)").fill("{not json");
  await page.getByRole("button", { name: "Make the task" }).click();
  await page.getByRole("alert").getByText("is not JSON").waitFor();
  await page.getByLabel("Input (JSON)").fill('{"to": 5000}');
  await page.getByRole("button", { name: "Make the task" }).click();
  await page.locator("h1 .badge.in_progress").waitFor();
  await until("it makes progress", async () => (await page.locator(".gauge progress").getAttribute("value")) !== "0");
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Yes, go on" }).click();
  await page.locator("h1 .badge.cancelled").waitFor();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.locator("h1 .badge.in_progress").waitFor();
  quiet(page);
});

test("without a script a dead letter is dropped after a page that asks", async () => {
  const page = await visit(browser, { script: false });
  await page.goto(`${place.base}/ui/dead-letters`);
  await page.getByRole("button", { name: /^Drop/ }).first().click();
  await page.getByRole("heading", { name: "Are you sure?" }).waitFor();
  await page.getByRole("button", { name: "Yes, go on" }).click();
  await page.getByText("The letter is dropped.").waitFor();
  quiet(page);
});

test("a schedule is made, switched off and removed", async () => {
  const page = await visit(browser, { language: "pt-BR" });
  await page.goto(`${place.base}/ui/schedules`);
  await page.getByRole("link", { name: "Novo agendamento" }).click();
  await page.getByLabel("Nome").fill("semanal");
  await page.getByLabel("Tipo").selectOption("count");
  await page.getByLabel("Cron").fill("0 4 * * 1-5");
  await page.getByRole("button", { name: "Salvar" }).click();
  await page.getByText("às 04:00 de segunda a sexta").waitFor();
  await page.getByRole("button", { name: "Desativar semanal" }).click();
  await page.getByRole("button", { name: "Ativar semanal" }).waitFor();
  await page.getByRole("link", { name: "Editar semanal" }).click();
  await page.getByRole("button", { name: "Remover" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Sim, continuar" }).click();
  await page.getByText("Agendamento removido.").waitFor();
  assert.equal(await page.getByText("semanal").count(), 0);
  quiet(page);
});

test("a task's command for a terminal calls the server that shows the page", async () => {
  const page = await visit(browser);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(place.base + pages.task);
  await page.locator("[data-copy]").click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `curl -s ${place.base}${pages.task.replace("/ui", "")}`);
  quiet(page);
});
