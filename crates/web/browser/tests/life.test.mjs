// The whole of a mission's life, driven by clicks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open, picture, quiet, tile, visit } from "../browser.mjs";
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

test("from an empty file to completed missions, in Portuguese, without loading a page anew", async () => {
  const page = await visit(browser, { language: "pt-BR" });
  await page.goto(`${place.base}/ui`);
  await page.getByRole("heading", { name: "Primeiros passos" }).waitFor();
  await picture(page, "first-steps");

  await place.fleet();
  await page.goto(`${place.base}/ui/missions?state=bank`);
  await page.getByText("O banco está vazio.").waitFor();
  await page.getByRole("link", { name: "Novas missões" }).first().click();
  await page.getByLabel("De", { exact: true }).fill("2025-01-01");
  await page.getByLabel("Até", { exact: true }).fill("2025-01-06");
  await page.getByRole("button", { name: "Criar missões" }).click();
  await page.getByText("6 criadas, 0 já existiam, 0 na fila").waitFor();

  await page.goto(`${place.base}/ui`);
  await page.getByRole("link", { name: "Selecionar Missões" }).click();
  await page.getByRole("heading", { name: "Banco de Missões" }).waitFor();
  const queue = page.getByRole("button", { name: "Adicionar à fila" });
  await until("nothing can be queued while nothing is selected", () => queue.isDisabled());
  await page.locator("tbody input[name=id]").nth(0).check();
  await page.locator("tbody input[name=id]").nth(1).check();
  await page.getByText("2 selecionadas").waitFor();
  await queue.click();
  await page.getByText("2 adicionadas à fila").waitFor();
  await page.getByLabel("Selecionar as desta página").check();
  await page.getByText("4 selecionadas").waitFor();
  await page.getByRole("button", { name: "Adicionar à fila" }).click();
  await page.getByText("4 adicionadas à fila").waitFor();

  await page.goto(`${place.base}/ui`);
  assert.equal(await tile(page, "queued"), 6);
  await page.evaluate(() => { window.still = true; });
  await page.getByRole("button", { name: "Iniciar" }).click();
  await page.getByText("Execução iniciada.").waitFor();
  await page.evaluate(() => { window.still = true; });
  await until("all are completed on the page", async () => (await tile(page, "completed")) === 6, 60_000);
  await page.locator(".said-big", { hasText: "O orquestrador não está em execução." }).waitFor({ timeout: 30_000 });
  assert.ok(await page.evaluate(() => window.still), "the page was not loaded anew");
  await picture(page, "overview");

  await page.getByRole("link", { name: /Concluídas/ }).click();
  await page.locator("tbody a.mono").first().click();
  await page.getByRole("heading", { name: "Linha do tempo" }).waitFor();
  assert.equal(await page.locator(".lane svg").count(), 3);
  assert.equal(await page.locator(".lane svg rect.good").count(), 3, "session, scrape and write went well");
  for (const event of ["mission_queued", "session_ready", "scrape_completed", "writer_completed", "mission_completed"]) {
    await page.getByText(event, { exact: true }).first().waitFor();
  }
  await picture(page, "mission");
  quiet(page);
});
