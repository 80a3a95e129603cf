// What pages do beyond links and forms: the slider of moments, the keys, and the choice of a project.
"use strict";
(() => {
  const stamped = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
  const tell = (slide) => slide.setAttribute("aria-valuetext", `${stamped(Number(slide.value)).replace("T", " ")} UTC`);
  const slider = () => {
    const slide = document.getElementById("as-of-slide");
    if (!slide || Number(slide.max) <= Number(slide.min)) return;
    slide.hidden = false;
    tell(slide);
  };
  // On a telephone what narrows down is folded, so that what it is all about is seen.
  const fold = () => {
    if (matchMedia("(max-width: 48rem)").matches) for (const facet of document.querySelectorAll(".facet:not([data-chosen])")) facet.open = false;
  };
  // Keys of one letter act at once: who speaks to the machine, or slips, turns them off, in this browser.
  const KEYS = "jidomem-keys";
  const acting = () => localStorage.getItem(KEYS) !== "off";
  const keys = () => {
    document.documentElement.classList.toggle("keyless", !acting());
    const box = document.getElementById("keys");
    if (!box) return;
    box.checked = acting();
    box.closest(".keys").hidden = false;
  };
  const begin = () => { slider(); fold(); keys(); };
  begin();
  document.addEventListener("htmx:after:swap", () => {
    begin();
    const refusal = document.querySelector(".refusal");
    if (refusal) (document.getElementById("reason") || refusal).focus(); // it is read out as an alert
    else if (document.activeElement && document.activeElement.id === "q") document.getElementById("main").focus(); // what is found is walked by j and k
    if (document.querySelector(".looked-at, .done")) scrollTo(0, 0); // the next one that waits, and what was done, are above
  });
  document.addEventListener("input", ({ target }) => {
    if (target.id !== "as-of-slide") return;
    target.form.elements.as_of.value = stamped(Number(target.value));
    tell(target);
  });
  document.addEventListener("change", ({ target }) => {
    if (target.id === "as-of-slide") target.form.requestSubmit();
    if (target.id !== "keys") return;
    localStorage.setItem(KEYS, target.checked ? "on" : "off");
    keys();
  });
  const project = document.getElementById("project");
  if (project) {
    project.addEventListener("change", () => location.assign(project.dataset.goes.replace("{}", encodeURIComponent(project.value))));
  }
  for (const upload of document.querySelectorAll("input[type=file][data-into]")) {
    upload.parentElement.hidden = false;
    upload.addEventListener("change", async () => {
      if (upload.files.length) document.getElementById(upload.dataset.into).value = await upload.files[0].text();
    });
  }
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;
  document.addEventListener("click", (event) => { // the second half of a double click may hit what came meanwhile
    if (event.detail > 1 && event.target.closest("button[name=act]")) event.preventDefault();
  }, true);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !acting()) return;
    const search = event.key === "/" ? document.querySelector("nav a[data-search]") : null;
    const wanted = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`) || search;
    if (wanted) {
      event.preventDefault();
      if (event.repeat) return; // a key that is held down settles one, not one after the other
      if (wanted.matches("input, textarea, select")) wanted.focus();
      else wanted.click();
    } else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll(".card h3 a, .card > a")];
      if (!links.length) return;
      const at = links.findIndex((link) => link.closest(".card").contains(document.activeElement));
      const next = links[Math.min(links.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))];
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    }
  });
})();
