// Search in the sections of all pages. The index is a script, which browsers load also where the pages are plain files;
// it is asked for when the field gets the focus.
"use strict";
{
  const top = document.currentScript.dataset.top;
  const RESULTS_MAX = 20;

  const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);

  // How well a section fits: a word in its heading counts more than some in its text; every word must be there.
  const score = ([, page, heading, text], wanted) => {
    const title = `${page} ${heading}`.toLowerCase();
    let sum = 0;
    for (const word of wanted) {
      if (title.includes(word)) sum += 10;
      else if (text.includes(word)) sum += Math.min(text.split(word).length - 1, 5);
      else return 0;
    }
    return heading === "" ? sum + 1 : sum;
  };

  const item = ([address, page, heading]) => {
    const link = document.createElement("a");
    link.href = top + address;
    link.textContent = heading || page;
    const of = document.createElement("small");
    of.textContent = heading ? page : "page";
    link.append(of);
    const row = document.createElement("li");
    row.append(link);
    return row;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector("#search");
    const found = document.querySelector("#found");

    const show = () => {
      const wanted = words(field.value);
      const sections = window.oribiSections || [];
      const scored = wanted.length ? sections.map((section) => [score(section, wanted), section]).filter(([sum]) => sum > 0) : [];
      scored.sort(([a], [b]) => b - a);
      found.replaceChildren(...scored.slice(0, RESULTS_MAX).map(([, section]) => item(section)));
      if (wanted.length && sections.length && !scored.length) found.textContent = "Nothing found.";
      found.hidden = !wanted.length;
    };

    field.addEventListener("focus", () => {
      if (window.oribiSections || document.querySelector("#sections")) return;
      const script = document.createElement("script");
      script.id = "sections";
      script.src = `${top}sections.js`;
      script.onload = show;
      document.head.append(script);
    });
    field.addEventListener("input", show);
    field.addEventListener("keydown", (event) => event.key === "Escape" && ((field.value = ""), show()));
    field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      found.querySelector("a")?.click();
    });
    found.addEventListener("click", () => (found.hidden = true));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(input|textarea)$/i.test(event.target.tagName)) return;
      event.preventDefault();
      field.focus();
    });
  });
}
