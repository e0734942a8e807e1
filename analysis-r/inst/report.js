// SPDX-License-Identifier: Apache-2.0
// What the page gains with a script: figures enlarge, links unfold what they lead into, short folded parts are
// printed. It makes elements by name and text alone, never from markup.
"use strict";
(() => {
  const make = (name, className, text) => {
    const element = document.createElement(name);
    element.className = className;
    if (text) element.textContent = text;
    return element;
  };

  // --- Figures: the drawing itself moves into the dialog and back, so that its identifiers stay the only ones.
  const scales = [1, 1.5, 2, 3, 4, 6, 8];
  // A drawing that would leave more than a third of the screen's height empty opens as high as the screen.
  const leastHeight = 1.5;
  const dialog = make("dialog", "zoom");
  const bar = make("div", "zoom-bar");
  const title = make("p", "zoom-title");
  const scale = make("span", "zoom-scale");
  const view = make("div", "zoom-view");
  let shown = null;

  // Widths at which the drawing is as wide and as high as the view, with the scroll bars' room: that a larger figure
  // needs some changes nothing of its scale.
  const widths = () => {
    const box = shown.drawing.viewBox.baseVal;
    return [view.offsetWidth, (view.offsetHeight * box.width) / box.height];
  };

  const draw = () => {
    const factor = shown.scales[shown.step];
    shown.drawing.style.width = `${Math.floor(Math.min(...widths()) * factor)}px`;
    scale.textContent = `${Math.round(100 * factor)} %`;
    smaller.disabled = shown.step === 0;
    larger.disabled = shown.step === shown.scales.length - 1;
  };

  // The step to open with; the scale that fills the height is one among the others.
  const openingStep = () => {
    const [wide, high] = widths();
    const filling = Math.floor((100 * high) / wide) / 100;
    if (!(filling >= leastHeight && filling <= scales[scales.length - 1])) return 0;
    shown.scales = [...new Set([...scales, filling])].sort((a, b) => a - b);
    return shown.scales.indexOf(filling);
  };

  // What lies under the pointer (else in the middle) stays where it is.
  const zoomTo = (step, pointer) => {
    const box = view.getBoundingClientRect();
    const x = pointer ? pointer.clientX - box.left : view.clientWidth / 2;
    const y = pointer ? pointer.clientY - box.top : view.clientHeight / 2;
    const left = (view.scrollLeft + x) / view.scrollWidth;
    const top = (view.scrollTop + y) / view.scrollHeight;
    shown.step = Math.max(0, Math.min(shown.scales.length - 1, step));
    draw();
    view.scrollLeft = left * view.scrollWidth - x;
    view.scrollTop = top * view.scrollHeight - y;
  };
  const zoomBy = (change, pointer) => zoomTo(shown.step + change, pointer);

  // Of the wide and the narrow drawing the one that this window shows.
  const drawingOf = (figure) => [...figure.querySelectorAll("svg")].find((one) => getComputedStyle(one).display !== "none");

  const open = (figure) => {
    const drawing = drawingOf(figure);
    const place = make("div", "zoom-place");
    place.style.height = `${drawing.getBoundingClientRect().height}px`;
    drawing.replaceWith(place);
    view.append(drawing);
    shown = { drawing, place, scales, step: 0 };
    title.textContent = figure.querySelector("strong").textContent;
    dialog.showModal();
    shown.step = openingStep();
    draw();
    view.focus();
  };

  const putBack = () => {
    if (!shown) return;
    shown.drawing.style.width = "";
    shown.place.replaceWith(shown.drawing);
    shown = null;
  };

  const control = (text, label, action) => {
    const button = make("button", "", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", action);
    return button;
  };
  const smaller = control("\u2212", "Smaller", () => zoomBy(-1));
  const larger = control("+", "Larger", () => zoomBy(1));

  const buildDialog = () => {
    title.id = "zoom-title";
    dialog.setAttribute("aria-labelledby", title.id);
    scale.setAttribute("role", "status");
    view.tabIndex = 0;
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", "Enlarged figure: plus and minus change its size, arrows move it");
    bar.append(title, control("Close", "Close", () => dialog.close()), smaller, scale, larger);
    dialog.append(bar, view);
    document.body.append(dialog);
    dialog.addEventListener("close", putBack);
    dialog.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+" || event.key === "=") zoomBy(1);
      else if (event.key === "-") zoomBy(-1);
      else if (event.key === "0") zoomTo(0);
      else return;
      event.preventDefault();
    });
    view.addEventListener("dblclick", (event) => zoomBy(event.shiftKey ? -1 : 1, event));
    view.addEventListener("wheel", (event) => {
      // A pinch on a touch pad comes as a wheel with Ctrl.
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1 : -1, event);
    }, { passive: false });
    addEventListener("resize", () => { if (shown) draw(); });
  };

  // A mouse drags the drawing; fingers scroll and pinch by themselves.
  const letDrag = () => {
    let from = null;
    view.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = { x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop };
      view.setPointerCapture(event.pointerId);
      view.classList.add("dragged");
    });
    view.addEventListener("pointermove", (event) => {
      if (from) view.scrollTo(from.x - event.clientX, from.y - event.clientY);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      view.addEventListener(end, () => {
        from = null;
        view.classList.remove("dragged");
      });
    }
  };

  if (typeof dialog.showModal === "function") {
    buildDialog();
    letDrag();
    for (const figure of document.querySelectorAll("figure")) {
      const drawn = figure.querySelectorAll("svg");
      if (drawn.length === 0) continue;
      const name = figure.querySelector("strong").textContent;
      const button = control("Enlarge", `Enlarge ${name}`, () => open(figure));
      button.className = "enlarge";
      figure.querySelector("figcaption").prepend(button);
      figure.classList.add("enlarges");
      for (const drawing of drawn) drawing.addEventListener("click", () => { if (!shown) open(figure); });
    }
  }

  // --- Values of a figure's points: under the pointer, or with the arrow keys where the figure has the focus.
  const tip = make("p", "tip");
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const words = new Map();
  for (const mark of document.querySelectorAll("circle.mark")) {
    // Without a script the browser shows it by itself.
    words.set(mark, mark.querySelector("title").textContent);
    mark.replaceChildren();
  }
  // What a key has shown stays when the page moves under a pointer that rests.
  let byKey = false;
  const hideValue = () => {
    byKey = false;
    tip.textContent = "";
    for (const mark of document.querySelectorAll(".mark.on")) mark.classList.remove("on");
  };
  const showValue = (mark) => {
    hideValue();
    mark.classList.add("on");
    // A dialog lies over all that is not in it.
    (mark.closest("dialog") ?? document.body).append(tip);
    tip.textContent = words.get(mark);
    const box = mark.getBoundingClientRect();
    tip.style.top = `${Math.max(4, box.top - tip.offsetHeight - 4)}px`;
    tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 4))}px`;
  };
  document.addEventListener("pointerover", (event) => {
    if (words.has(event.target) && !byKey) showValue(event.target);
  });
  document.addEventListener("pointerout", (event) => { if (words.has(event.target) && !byKey) hideValue(); });
  document.addEventListener("pointermove", (event) => { if (event.movementX || event.movementY) byKey = false; });
  for (const plot of document.querySelectorAll("figure .plot")) {
    let at = -1;
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const marks = [...plot.querySelectorAll("circle.mark")].filter((mark) => mark.getClientRects().length > 0);
      if (!step || marks.length === 0) return;
      event.preventDefault();
      at = (at + step + marks.length) % marks.length;
      marks[at].scrollIntoView({ block: "nearest" });
      showValue(marks[at]);
      byKey = true;
    });
    plot.addEventListener("blur", hideValue);
  }

  // --- Tables: a click on a heading sorts by its column, a second one the other way round.
  const valueOf = (row, column) => {
    const text = row.cells[column].textContent.replace("\u2212", "-");
    const number = parseFloat(text);
    return /^[-+]?[0-9]/.test(text) && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return a < b ? -1 : Number(a > b);
    // What is no number stands behind numbers.
    return typeof a === "number" ? -1 : 1;
  };
  const sortBy = (table, heading) => {
    const column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => (down ? -1 : 1) * compare(valueOf(a, column), valueOf(b, column)));
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table")) {
    for (const heading of table.tHead ? table.tHead.rows[0].cells : []) {
      const button = make("button", "", heading.textContent);
      button.type = "button";
      button.addEventListener("click", () => sortBy(table, heading));
      heading.replaceChildren(button);
    }
  }

  // --- Tables download where they stand, as they are shown; those with a link to all their digits have that.
  const cellOf = (cell) => {
    const text = cell.textContent.replaceAll("\u2212", "-").replace(/^\u2013$/, "");
    // A spreadsheet takes what begins so as a formula; a number is none.
    const harmless = /^[=+\-@\t\r]/.test(text) && !/^[-+]?[0-9.]+( |$)/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  };
  const csvOf = (table) => [...table.rows].map((row) => `${[...row.cells].map(cellOf).join(",")}\n`).join("");
  const nameOf = (table) => table.closest("[id]")?.id ?? "table";
  for (const table of document.querySelectorAll("table")) {
    if (table.closest("details, section")?.querySelector(":scope > .tools")) continue;
    const line = make("p", "tools");
    const link = make("a", "", "Download as CSV");
    link.download = `${nameOf(table)}.csv`;
    link.href = "data:text/csv;charset=utf-8,";
    // Made when it is asked for: as the table is sorted then.
    link.addEventListener("click", () => {
      link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(table))}`;
    });
    line.append(link);
    (table.closest(".scroll") ?? table).before(line);
  }

  // --- Folded parts
  const unfold = (id) => {
    for (let part = document.getElementById(id); part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
  };
  const followAddress = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    unfold(target.id);
    target.scrollIntoView();
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link) unfold(link.hash.slice(1));
  });
  addEventListener("hashchange", followAddress);
  if (location.hash) followAddress();

  let unfolded = [];
  addEventListener("beforeprint", () => {
    putBack();
    if (dialog.open) dialog.close();
    unfolded = [...document.querySelectorAll("details:not([open]):not(.many)")];
    for (const part of unfolded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of unfolded) part.open = false;
  });
})();
