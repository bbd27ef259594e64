// Light, dark, or as the system has it.

import {$} from "./dom.js";

const NEXT = {auto: "light", light: "dark", dark: "auto"};

export function theme(changed) {
  const set = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    $("#theme").title = `Colours: ${name}`;
    changed();
  };
  let now = "auto";
  $("#theme").addEventListener("click", () => { now = NEXT[now]; set(now); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
