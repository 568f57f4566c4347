// Live pages and keys. Without this script every page works: forms are forms and links are links.
"use strict";
document.documentElement.classList.add("js");

(() => {
  const watched = document.querySelector("[data-watch]");
  let source;
  const listen = () => {
    source = new EventSource("/events");
    source.addEventListener("changed", () => {
      // A page on which somebody writes is never replaced under their hands: it says that there is news.
      if (watched) document.getElementById("news").hidden = false;
      else htmx.trigger(document.body, "changed");
    });
  };
  listen();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
})();

(() => {
  const stops = () => [...document.querySelectorAll("[data-row], .proposal > section, .diff tr.new, .diff td.new")]
    .filter((one) => one.offsetParent !== null);
  let at = -1;
  const go = (step) => {
    const all = stops();
    if (!all.length) return;
    all[at]?.classList?.remove("marked");
    at = Math.max(0, Math.min(all.length - 1, at + step));
    all[at].classList.add("marked");
    all[at].scrollIntoView({ block: "center" });
    const inner = all[at].querySelector("a");
    if (all[at].hasAttribute("data-row")) inner?.focus({ preventScroll: true });
  };
  const to = (id) => document.getElementById(id)?.scrollIntoView();
  const keys = {
    g: () => location.assign("/"),
    a: () => location.assign("/account"),
    j: () => go(1),
    k: () => go(-1),
    o: () => stops()[at]?.querySelector("a")?.click(),
    d: () => { to("diff"); document.getElementById("open-diff")?.focus(); },
    c: () => { to("say"); document.querySelector("#say textarea")?.focus(); },
    r: () => { to("decide"); document.querySelector("#decide textarea")?.focus(); },
    "?": () => document.getElementById("keys").showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
