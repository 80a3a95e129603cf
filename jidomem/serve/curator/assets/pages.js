// What pages do beyond links and forms: the slider of moments, the keys, and the choice of a project.
"use strict";
(() => {
  const input = document.getElementById("as-of");
  const slide = document.getElementById("as-of-slide");
  const stamped = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
  if (input && slide && Number(slide.max) > Number(slide.min)) {
    slide.hidden = false;
    const tell = () => slide.setAttribute("aria-valuetext", `${stamped(Number(slide.value)).replace("T", " ")} UTC`);
    tell();
    slide.addEventListener("input", () => { input.value = stamped(Number(slide.value)); tell(); });
    slide.addEventListener("change", () => slide.form.requestSubmit());
  }
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
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const wanted = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (wanted) {
      event.preventDefault();
      if (wanted.matches("input, textarea, select")) wanted.focus();
      else wanted.click();
    } else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll(".card h3 a")];
      if (!links.length) return;
      const at = links.findIndex((link) => link.closest(".card").contains(document.activeElement));
      const next = links[Math.min(links.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))];
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    }
  });
})();
