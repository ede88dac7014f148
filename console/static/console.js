// Refreshed parts, live alerts, keys and theme of pages. Every page can be read without this script.

const policy = window.trustedTypes?.createPolicy("console", { createHTML: (text) => text }) ?? { createHTML: (text) => text };
export const trusted = (text) => policy.createHTML(text); // rendered and escaped by the server
const parsed = (text) => new DOMParser().parseFromString(trusted(text), "text/html");
const banner = document.getElementById("connection");

// Theme: light, dark, or as the system has it.
document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `forestall_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
});

const menu = document.querySelector(".menu");
if (menu && matchMedia("(max-width: 760px)").matches) menu.open = false;

// Forms that ask first, and choices that show their page at once.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
document.addEventListener("change", (event) => event.target.closest("form[data-auto]")?.requestSubmit());

// Refreshed parts: the page is requested again, and changed parts are replaced, unless they have the pointer or focus.
const parts = [...document.querySelectorAll("[data-refresh]")].map((part) => part.id);
const period = Math.min(...[...document.querySelectorAll("[data-refresh]")].map((part) => +part.dataset.refresh));
let tag = "";
const isBusy = (part) => part.contains(document.activeElement) || (part.matches(":hover") && String(getSelection()) !== "");
export async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { "X-Refresh": period, "If-None-Match": tag }, redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload();
    banner.hidden = answer.ok || answer.status === 304;
    if (!answer.ok) return;
    tag = answer.headers.get("ETag");
    const page = parsed(await answer.text());
    if (document.querySelector("[data-until-over]") && !page.querySelector("[data-until-over]")) return location.reload();
    for (const id of parts) {
      const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
      if (!old || !fresh || old.innerHTML === fresh.innerHTML) continue;
      if (isBusy(old)) tag = ""; // what is left as it was is asked for again
      else old.replaceChildren(...fresh.childNodes);
    }
  } catch {
    banner.hidden = false;
  }
}
if (parts.length) {
  const again = async () => { await refresh(); setTimeout(again, 1000 * period); };
  setTimeout(again, 1000 * period);
  document.addEventListener("visibilitychange", refresh);
}
const retry = document.querySelector("[data-retry]");
if (retry) setInterval(async () => {
  const answer = await fetch(location.href, { headers: { "X-Refresh": "1" } }).catch(() => null);
  if (answer && answer.status !== 503) location.reload();
}, 1000 * retry.dataset.retry);

// Live alerts: added on top while the reader is at the top and not in the list, otherwise shown by a button.
const table = document.querySelector("table[data-live]");
if (table) {
  const [body, state, more] = [table.tBodies[0], document.getElementById("live-state"), document.getElementById("live-more")];
  const most = 20 * table.dataset.size; // rows of a page that stays open
  let [after, held, count, isCut, older] = [table.dataset.after, [], 0, false, null]; // older: cursor after the last held row
  const say = (kind, text) => { state.className = `live ${kind}`; state.querySelector("[data-live-text]").textContent = text; };
  const isRead = () => scrollY > 150 || body.contains(document.activeElement) || body.matches(":hover");
  const leadTo = (cursor) => {
    const [pager, url] = [document.querySelector(".pager"), new URL(location)];
    url.searchParams.set("after", cursor);
    const link = pager.querySelector("[rel=next]") ?? pager.appendChild(Object.assign(document.createElement("a"), { rel: "next", textContent: "Older" }));
    link.href = url;
  };
  const insert = () => {
    if (body.rows.length + held.length > most) return location.reload();
    if (older) {
      body.replaceChildren();
      leadTo(older);
    }
    body.prepend(...held);
    document.getElementById("empty")?.remove();
    [held, count, isCut, older, more.hidden] = [[], 0, false, null, true];
  };
  more.addEventListener("click", () => { insert(); scrollTo(0, 0); });
  let source;
  const follow = () => {
    if (document.hidden || source) return;
    source = new EventSource(`${table.dataset.live}&after=${encodeURIComponent(after)}`);
    source.addEventListener("open", () => { say("on", "live"); banner.hidden = true; });
    source.addEventListener("rows", (event) => {
      after = event.lastEventId;
      const news = JSON.parse(event.data);
      const known = new Set([...body.rows, ...held].map((row) => row.dataset.id));
      const rows = [...parsed(`<table>${news.rows}</table>`).querySelectorAll("tr")];
      const added = rows.filter((row) => !known.has(row.dataset.id));
      if (!added.length) return;
      count += news.count - (rows.length - added.length);
      isCut ||= news.more;
      older = news.next ?? older;
      held = news.next ? rows : [...added, ...held].slice(0, most);
      if (!isRead()) return insert();
      const number = `${isCut ? "more than " : ""}${count.toLocaleString("en")}`;
      more.textContent = `${number} new alert${count === 1 ? "" : "s"}: show ${count === 1 ? "it" : "the newest"}`;
      more.hidden = false;
    });
    source.addEventListener("error", () => { end(); say("off", "reconnecting"); setTimeout(follow, 1000); });
  };
  const end = () => { source?.close(); source = undefined; };
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : follow()));
  follow();
}

// Pictures wider than the page are scrolled to the steps with activity.
for (const drawing of document.querySelectorAll(".drawing")) {
  const place = drawing.querySelector(".fw-expected, .badge-open");
  if (place) drawing.scrollLeft += place.getBoundingClientRect().left - drawing.getBoundingClientRect().left - drawing.clientWidth / 2;
}

// Keys: / to find, j and k through rows, g and a letter to a view.
const views = { o: "/", a: "/alerts", i: "/incidents", t: "/transactions", p: "/patterns", r: "/process", s: "/streams", w: "/webhooks", q: "/ask", d: "/dead-letters" };
let waits = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (waits && views[event.key]) location.href = views[event.key];
  waits = event.key === "g";
  if (event.key === "/") { event.preventDefault(); document.querySelector(".menu").open = true; document.getElementById("find").focus(); }
  if (event.key === "j" || event.key === "k") {
    const links = [...document.querySelectorAll(".rows tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  }
});
