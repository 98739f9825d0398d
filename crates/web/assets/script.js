// What a script adds to pages that work without one: they stay as they are while what has changed
// in them is exchanged, and they can be driven from the keyboard. Nothing here knows what a mission
// is: the server makes every page, this only takes over what is new in it.

const main = document.getElementById("main");
const aloud = document.getElementById("aloud");
const topics = (main?.dataset.topics ?? "").split(" ").filter(Boolean);

// --- taking over what is new -------------------------------------------------------------------

const held = document.getElementById("held");
let pointed = null; // the list under the pointer: its rows do not move
let waiting = null; // a page whose rows are held back

document.addEventListener("pointerover", (event) => {
  pointed = event.target.closest?.("[data-rows]") ?? null;
  if (!pointed) release();
});
document.addEventListener("pointerleave", () => { pointed = null; release(); });
held?.addEventListener("click", () => { pointed = null; release(true); });

function release(now = false) {
  if (!waiting || (pointed && !now)) return;
  const page = waiting;
  waiting = null;
  held.hidden = true;
  take(page);
}

const isBusy = (list) => pointed === list || list.contains(document.activeElement);

/** Makes `old` like `fresh`, keeping nodes, focus, and what the person has typed or ticked. */
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.isEqualNode(fresh)) return;
  const isField = /^(INPUT|TEXTAREA|SELECT)$/.test(old.nodeName);
  for (const { name, value } of [...fresh.attributes]) {
    if (isField && /^(value|checked)$/.test(name)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    const isOurs = name === "open" || name === "aria-selected" || name === "tabindex" || (isField && name === "checked");
    if (!isOurs && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.nodeName === "TEXTAREA" || old.nodeName === "SELECT") return;
  if (old.hasAttribute("data-rows")) rows(old, fresh);
  else children(old, fresh);
}

function children(old, fresh) {
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((node, place) => {
    if (place < before.length) morph(before[place], node);
    else old.append(node);
  });
  before.slice(after.length).forEach((node) => node.remove());
}

/** Rows have keys. Under the pointer or the focus they change in place, and neither come nor go. */
function rows(old, fresh) {
  const known = new Map([...old.children].map((row) => [row.dataset.key, row]));
  const wanted = [...fresh.children];
  const isSame = wanted.length === old.children.length
    && wanted.every((row, place) => old.children[place].dataset.key === row.dataset.key);
  for (const row of wanted) {
    const there = known.get(row.dataset.key);
    if (there) morph(there, row.cloneNode(true));
  }
  if (isSame) return;
  if (isBusy(old)) {
    pending = true;
    return;
  }
  const hadNone = known.size === 0;
  wanted.forEach((row, place) => {
    let there = known.get(row.dataset.key);
    if (!there) {
      there = row;
      if (!hadNone) there.classList.add("fresh");
    }
    if (old.children[place] !== there) old.insertBefore(there, old.children[place] ?? null);
    known.delete(row.dataset.key);
  });
  for (const row of known.values()) row.remove();
}

let pending = false;

function take(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("main");
  if (!fresh) return;
  fresh.querySelector("#said")?.remove();
  const said = main.querySelector("#said");
  if (said) fresh.prepend(said.cloneNode(true));
  pending = false;
  children(main, document.adoptNode(fresh));
  if (document.title !== page.title) document.title = page.title;
  if (pending) {
    waiting = text;
    held.hidden = false;
  }
  tally();
  const summary = main.querySelector("[data-aloud]")?.textContent.trim();
  if (summary && aloud.textContent !== summary) aloud.textContent = summary;
}

// --- being told that something has happened ----------------------------------------------------

const button = document.getElementById("live");
let paused = false;
let stream = null;
let due = false;
let asking = false;
let last = 0;

function show(state) {
  if (!button) return;
  button.dataset.state = state;
  button.querySelector(".text").textContent = button.dataset[state];
  button.setAttribute("aria-pressed", String(paused));
}

/** Nothing changes under a question: what it is about is what is done. */
const isHeld = () => paused || document.hidden || document.querySelector("dialog[open]") !== null;

async function refresh() {
  due = false;
  if (asking || isHeld()) { due = true; return; }
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) location.reload();
    else if (answer.status < 500) {
      const text = await answer.text();
      if (isHeld()) due = true;
      else take(text);
    } else setTimeout(soon, 2000);
  } catch {
    setTimeout(soon, 2000);
  } finally {
    asking = false;
    last = performance.now();
    if (due && !isHeld()) soon();
  }
}

let timer = null;
/** At most once a second, however much happens. */
function soon() {
  due = true;
  if (timer) return;
  const pause = Math.max(50, 1000 - (performance.now() - last));
  timer = setTimeout(() => { timer = null; if (due) refresh(); }, pause);
}

function listen() {
  stream?.close();
  stream = new EventSource("/ui/events");
  stream.addEventListener("open", () => {
    show(paused ? "paused" : "on");
    // Something may have happened between the making of this page and now, and nobody was told.
    soon();
  });
  stream.addEventListener("error", () => {
    show("lost");
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
  stream.addEventListener("change", (event) => {
    const changed = JSON.parse(event.data).topics;
    if (topics.includes("all") || changed.includes("all") || topics.some((topic) => changed.includes(topic))) soon();
  });
}

function pause(wish) {
  paused = wish;
  show(paused ? "paused" : stream?.readyState === EventSource.OPEN ? "on" : "lost");
  if (!paused) soon();
}

if (button && topics.length) {
  button.hidden = false;
  button.addEventListener("click", () => pause(!paused));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && due) soon(); });
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("close", () => { if (due) soon(); });
  }
  listen();
  // Times on the page grow old although nothing happens.
  setInterval(() => { if (!isHeld() && performance.now() - last > 30000) soon(); }, 10000);
}

// --- choosing rows -----------------------------------------------------------------------------

/** The boxes of rows that belong to a form, wherever they stand. */
const rowBoxes = (form) => [...form.elements].filter((field) => field.matches('input[type="checkbox"][name="id"]'));

function tally() {
  for (const form of document.querySelectorAll("form[data-choice]")) {
    const boxes = rowBoxes(form);
    const chosen = boxes.filter((box) => box.checked).length;
    const everything = form.querySelector('input[name="matching"]')?.checked;
    const place = form.querySelector("[data-chosen]");
    if (place) place.textContent = everything ? place.dataset.all : `${chosen} ${place.dataset.chosen}`;
    for (const action of form.querySelectorAll("button[data-needs-choice]")) action.disabled = !chosen && !everything;
    const page = [...form.elements].find((field) => field.matches("[data-choose-page]"));
    if (page) {
      page.checked = chosen > 0 && chosen === boxes.length;
      page.indeterminate = chosen > 0 && chosen < boxes.length;
    }
  }
}
document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches?.("[data-choose-page]")) {
    for (const other of rowBoxes(box.form)) other.checked = box.checked;
  }
  if (box.matches?.("input[type=file][data-into]")) {
    box.files[0]?.text().then((text) => { document.getElementById(box.dataset.into).value = text; });
  }
  tally();
});
for (const only of document.querySelectorAll("[data-script]")) only.hidden = false;
tally();
// Where the menu is a row, one sees where one is.
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// --- asking before what cannot be undone -------------------------------------------------------

document.addEventListener("submit", (event) => {
  const by = event.submitter;
  const says = by?.dataset.confirm;
  if (!says || by.dataset.confirmed) return;
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  const count = event.target.querySelector("[data-chosen]")?.textContent ?? "";
  document.getElementById("confirm-says").textContent = [says, count].filter(Boolean).join(" · ");
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    const yes = document.createElement("input");
    yes.type = "hidden";
    yes.name = "confirmed";
    yes.value = "yes";
    event.target.append(yes);
    by.dataset.confirmed = "yes";
    event.target.requestSubmit(by);
  }, { once: true });
});

document.addEventListener("click", async (event) => {
  const source = event.target.closest?.("[data-copy]");
  if (!source) return;
  // A command for a terminal calls the server where the browser found it.
  const text = source.dataset.copy.replace("{origin}", location.origin);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  aloud.textContent = source.dataset.copied ?? "";
  const words = source.textContent;
  source.textContent = source.dataset.copied ?? words;
  setTimeout(() => { source.textContent = words; }, 1500);
});

// --- the keyboard ------------------------------------------------------------------------------

const PLACES = { o: "/ui", m: "/ui/missions", e: "/ui/extractions", t: "/ui/tasks", a: "/ui/audit", w: "/ui/workers", p: "/ui/proxies", s: "/ui/settings" };
let going = 0;

function step(by) {
  const all = [...document.querySelectorAll("[data-rows] > [data-key]")].filter((row) => row.querySelector("a[href]"));
  if (!all.length) return;
  const now = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[Math.min(Math.max(now + by, 0), all.length - 1)];
  row.querySelector("a[href]").focus();
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
  if (isTyping) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (performance.now() - going < 1200 && PLACES[event.key]) {
    location.href = PLACES[event.key];
    return;
  }
  const row = document.activeElement?.closest?.("[data-key]");
  switch (event.key) {
    case "/": document.getElementById("search").focus(); break;
    case "?": document.getElementById("help").showModal(); break;
    case "j": step(1); break;
    case "k": step(-1); break;
    case "x": {
      const box = row?.querySelector('input[type="checkbox"]');
      if (!box) return;
      box.checked = !box.checked;
      box.dispatchEvent(new Event("change", { bubbles: true }));
      break;
    }
    case "p": if (button && !button.hidden) pause(!paused); break;
    case "g": going = performance.now(); break;
    case "Escape": document.querySelector("details.menu[open]")?.removeAttribute("open"); return;
    default: return;
  }
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.removeAttribute("open");
  }
});
