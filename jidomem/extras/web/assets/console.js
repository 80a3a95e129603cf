// The console: yasgui's editor on the SPARQL of this project alone, and answers as tables of plain text.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("console-data").textContent);
  const answers = document.getElementById("answers");
  const ask = document.getElementById("ask");
  const Yasqe = window.Yasqe;

  Yasqe.defaults.autocompleters = ["variables"]; // the others ask elsewhere
  Yasqe.registerAutocompleter({
    name: "jido",
    bulk: true,
    autoShow: false,
    persistenceId: null,
    isValidCompletionPosition: (editor) => {
      const token = editor.getCompleteToken();
      return Boolean(token) && /^jido:/.test(token.string);
    },
    get: () => page.terms,
  });
  const editor = new Yasqe(document.getElementById("console"), {
    value: new URLSearchParams(location.search).get("query") || page.query,
    persistenceId: null,
    editorHeight: "16rem",
    resizeable: false,
    showQueryButton: false,
    createShareableLink: null,
    extraKeys: { ...Yasqe.defaults.extraKeys, "Ctrl-Enter": () => run(), "Cmd-Enter": () => run(), Tab: false, "Shift-Tab": false },
  });
  editor.getInputField().setAttribute("aria-label", "SPARQL query");
  new MutationObserver(() => document.querySelector(".CodeMirror-hints")?.setAttribute("aria-label", "Terms")).observe(document.body, { childList: true, subtree: true });

  const made = (name, text, ...children) => {
    const element = document.createElement(name);
    if (text !== null) element.textContent = text;
    element.append(...children);
    return element;
  };
  const link = (href, text) => Object.assign(made("a", text), { href, rel: "noopener noreferrer nofollow" });
  // Signs that turn the direction of a line, or act, are written out, as on every page.
  const named = (code) => code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  const shown = (text) => text.replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, (sign) => named(sign.codePointAt(0)));
  const cell = (term) => {
    if (!term) return made("td", "");
    const most = 4000, whole = term.value.length;
    const text = shown(term.value.slice(0, most)) + (whole > most ? ` … the first ${most.toLocaleString("en")} of ${whole.toLocaleString("en")} characters; JSON has all of it` : "");
    if (term.type !== "uri") return made("td", text);
    if (term.value.startsWith(page.memories)) return made("td", null, link(page.page + encodeURIComponent(term.value), text));
    if (/^https?:\/\//.test(term.value) && !term.value.startsWith(page.ours)) return made("td", null, link(term.value, text));
    return made("td", text);
  };
  const table = (found) => {
    const names = found.head.vars;
    const head = made("tr", null, ...names.map((name) => Object.assign(made("th", name), { scope: "col" })));
    const rows = found.results.bindings.slice(0, page.shown).map((row) => made("tr", null, ...names.map((name) => cell(row[name]))));
    const region = made("div", null, made("table", null, made("thead", null, head), made("tbody", null, ...rows)));
    Object.assign(region, { className: "wide", tabIndex: 0, role: "region", ariaLabel: "Answer" });
    return region;
  };
  const address = (format) => `${page.endpoint}?${new URLSearchParams({ query: editor.getValue(), format, ...(page.as_of ? { as_of: page.as_of } : {}) })}`;
  const summary = (found, seconds) => {
    const rows = found.results.bindings.length;
    const more = rows > page.shown ? `, of which the first ${page.shown.toLocaleString("en")} are shown` : "";
    return made("p", `${rows.toLocaleString("en")} ${rows === 1 ? "row" : "rows"} in ${seconds.toFixed(2)} s${more} `,
      link(address("csv"), "CSV"), " ", link(address("json"), "JSON"));
  };
  const refused = (problem) => {
    const section = made("section", null, made("h2", "Not answered"), made("p", shown(problem.detail || "The server did not answer.")));
    if (problem.hint) section.append(made("p", null, made("strong", "Hint: "), shown(problem.hint)));
    return Object.assign(section, { className: "refusal", role: "alert" });
  };
  const read = async (response, began) => {
    const media = response.headers.get("Content-Type") || "";
    if (!response.ok) return [refused(media.includes("json") ? await response.json() : {})];
    if (!media.includes("json")) return [Object.assign(made("pre", shown(await response.text())), { tabIndex: 0 })];
    const found = await response.json();
    if (!found.results) return [made("p", found.boolean ? "Yes." : "No.")];
    return [summary(found, (performance.now() - began) / 1000), table(found)];
  };
  async function run() {
    ask.disabled = true;
    const began = performance.now();
    const fields = { query: editor.getValue(), ...(page.as_of ? { as_of: page.as_of } : {}) };
    try {
      const headers = { Accept: "application/sparql-results+json, text/turtle;q=0.9" };
      answers.replaceChildren(...await read(await fetch(page.endpoint, { method: "POST", headers, body: new URLSearchParams(fields) }), began));
    } catch (error) {
      answers.replaceChildren(refused({ detail: `The server did not answer: ${error.message}`, hint: "check that jidomem serve runs" }));
    }
    ask.disabled = false;
  }
  ask.addEventListener("click", run);
})();
