"use strict";
// Sorting: a click or Enter on a column's name; missing figures stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const up = head.getAttribute("aria-sort") !== "ascending";
      head.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.sort;
      const rows = [...table.tBodies[0].rows];
      const numbers = rows.every((row) => value(row) === "inf" || (value(row) !== "" && !Number.isNaN(Number(value(row)))));
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "inf" || y === "inf") return x === y ? 0 : x === "inf" ? 1 : -1;
        const order = numbers ? Number(x) - Number(y) : x.localeCompare(y);
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// Plots are drawn when they come into view, once, so that a page of fifty runs opens at once.
function draw(figure) {
  if (figure.hidden || figure.dataset.drawn || typeof Plotly === "undefined") return;
  figure.dataset.drawn = "yes";
  const plot = JSON.parse(figure.querySelector("script").textContent);
  Plotly.newPlot(figure.querySelector(".canvas"), plot.data, plot.layout, { responsive: true, displaylogo: false });
}
const figures = document.querySelectorAll("figure.plot");
const watcher = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
  { rootMargin: "400px" },
);
figures.forEach((figure) => watcher.observe(figure));
window.addEventListener("beforeprint", () => figures.forEach(draw));
for (const select of document.querySelectorAll("select[data-group]")) {
  select.addEventListener("change", () => {
    for (const figure of document.querySelectorAll(`figure[data-group="${select.dataset.group}"]`)) {
      figure.hidden = figure.id !== `plot-${select.value}`;
      draw(figure);
    }
  });
}
