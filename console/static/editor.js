// The editor of patterns: highlighting, faults below their lines while the user types, dry runs.

import { trusted } from "./console.js";

const [form, text, marked, fault, checked] = ["editor-form", "text", "marked", "fault", "checked"].map((id) => document.getElementById(id));
const keywords = new Set(("PATTERN EVENT SEQ AND OR NOT WHERE WITHIN RETURN INTO KEY ON MATCH SKIP NEXT ANY AS IN LIKE BETWEEN CASE WHEN THEN "
  + "ELSE END IS NULL TRUE FALSE TABLE FOR EACH ROW OF BUSINESS DAYS PARTITION TIMEOUT LATEST GREEDY TO").split(" "));
const token = /(?<comment>--[^\n]*)|(?<text>'(?:[^']|'')*')|(?<number>\b\d+(?:\.\d+)?\b)|(?<word>\b[A-Z][A-Z]+\b)/g;

function highlight() {
  const shown = [];
  let end = 0;
  for (const found of text.value.matchAll(token)) {
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if (kind === "word" && !keywords.has(found[0])) continue;
    const span = document.createElement("span");
    span.className = `tok-${kind}`;
    span.textContent = found[0];
    shown.push(text.value.slice(end, found.index), span);
    end = found.index + found[0].length;
  }
  marked.replaceChildren(...shown, `${text.value.slice(end)}\n`);
  text.rows = Math.max(6, text.value.split("\n").length + 1);
  place();
}

// One element marks the faulty line and shows the fault in the gap below it.
const lineHeight = 30;
function place() {
  marked.scrollLeft = text.scrollLeft;
  const line = +(fault.dataset.line || 0);
  fault.hidden = !line;
  if (!line) return;
  fault.style.top = `${8 + line * lineHeight - 8}px`;
}

let [waits, asked] = [0, 0];
async function check() {
  const number = ++asked;
  const answer = await fetch("/trials/check", { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
  if (number !== asked) return;
  if (!answer?.ok) return say("", "It cannot be checked now.");
  const found = await answer.json();
  fault.dataset.line = found.error && found.line ? found.line : "";
  fault.style.paddingLeft = `${Math.max(0, (found.column ?? 1) - 1)}ch`;
  fault.firstElementChild.textContent = found.error ? `^ ${found.error}` : "";
  if (found.error) say("bad", found.line ? `Line ${found.line}, column ${found.column}: ${found.error}` : found.error);
  else if (found.warnings.length) say("warn", found.warnings.join("\n"));
  else say("ok", "It can match.");
  text.setAttribute("aria-invalid", String(Boolean(found.error)));
  place();
}
const say = (kind, sentence) => { checked.className = `checked ${kind}`; checked.textContent = sentence; };
const soon = () => { clearTimeout(waits); waits = setTimeout(check, 300); };

// A dry run is of the members of the form at its start, which the user may change while its result is shown.
let tried = null;
const subject = () => ["stream", "constraints", "text"].map((name) => form[name].value).join("\n");
const outdate = () => { document.getElementById("outdated").hidden = tried === null || tried === subject(); };

text.addEventListener("input", () => { fault.dataset.line = ""; highlight(); soon(); outdate(); });
text.addEventListener("scroll", place);
form.addEventListener("change", () => { soon(); outdate(); });
text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.getElementById("dry-run").click(); });
document.getElementById("dry-run").addEventListener("click", async (event) => {
  const button = event.target;
  button.disabled = true;
  tried = subject();
  outdate();
  const trial = document.getElementById("trial");
  trial.textContent = `Running over the newest ${form.events.selectedOptions[0].text} events …`;
  trial.scrollIntoView({ block: "nearest" });
  const answer = await fetch("/trials/dry-run", { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
  button.disabled = false;
  const page = new DOMParser().parseFromString(trusted(answer?.ok ? await answer.text() : "<section>It cannot be tried now.</section>"), "text/html");
  trial.replaceChildren(...page.body.childNodes);
});
document.getElementById("f-stream").addEventListener("change", async (event) => {
  const answer = await fetch(`/editor?stream=${encodeURIComponent(event.target.value)}`);
  const page = new DOMParser().parseFromString(trusted(await answer.text()), "text/html");
  for (const id of ["vocabulary", "past"]) document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
});
highlight();
if (!("example" in text.dataset)) check();
