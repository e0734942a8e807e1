# SPDX-License-Identifier: Apache-2.0
"""Rules for a page that a browser can look up (WCAG 2.2): JavaScript that gives what breaks them."""

SKIPPED_HEADINGS = """
(() => {
  const headings = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')];
  const levels = headings.map(e => [Number(e.tagName[1]), e.textContent]);
  return levels.filter(([level], i) => level > (i ? levels[i - 1][0] : 0) + 1).map(([, text]) => text);
})()
"""
"""1.3.1: headings in order, no level left out."""

UNNAMED = """
[...document.querySelectorAll('svg, button, a, summary, [role=group], dialog')]
  .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()))
  .map(e => e.outerHTML.slice(0, 100))
"""
"""1.1.1 and 4.1.2: what is drawn and what can be used has a name."""

DRAWINGS = """
[...document.querySelectorAll('figure')].map(figure => {
  const drawing = [...figure.querySelectorAll('svg')].find(e => e.getClientRects().length);
  const box = drawing ? drawing.getBoundingClientRect() : {width: 0, height: 0};
  const marks = drawing ? drawing.querySelectorAll('polyline, circle, polygon, rect, path').length : 0;
  return {id: figure.id, width: box.width, height: box.height, marks};
})
"""
"""Every figure's drawing: its size and how many marks it has."""

SMALL_WORDS = """
[...document.querySelectorAll('figure svg')].filter(e => e.getClientRects().length).flatMap(drawing => {
  const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    // A letter alone is the index of E_A.
    const letters = parseFloat(getComputedStyle(text).fontSize) * scale;
    const small = text.textContent.trim().length > 1 && letters < 8.5;
    return small || box.left < frame.left - 1 || box.right > frame.right + 1;
  }).map(text => `${drawing.closest('figure').id}: ${text.textContent}`);
})
"""
"""Words of drawings that are smaller than 8.5 pixels as they are shown, or leave their drawing."""

CUT_TABLES = """
[...document.querySelectorAll('table')].filter(e => e.checkVisibility())
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.textContent.slice(0, 100))
"""
"""On paper nothing scrolls: what goes over the edge is lost."""

BROKEN_WORDS = """
[...document.querySelectorAll('td, th')].filter(cell => cell.checkVisibility()).flatMap(cell => {
  const found = [];
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const word of walker.currentNode.data.matchAll(/\\p{L}+/gu)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
      if (lines.size > 1) found.push(word[0]);
    }
  }
  return found;
})
"""
"""Words of tables that begin on one line and end on the next."""

LOW_CONTRAST = """
(() => {
  const numbers = color => color.match(/[0-9.]+/g).map(Number);
  const light = color => {
    const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = numbers(color).map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if ((numbers(color)[3] ?? 1) > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = new Set();
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    // Drawings have a white ground of their own, whatever the page's.
    if (!own || e.closest('svg, script') || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const [low, high] = [light(style.color), light(ground(e))].sort((a, b) => a - b);
    const pixels = parseFloat(style.fontSize);
    const large = pixels >= 24 || (pixels >= 18.66 && style.fontWeight >= 700);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.add(`${e.tagName}.${e.className} ${style.color} ${ratio}`);
  }
  return [...found];
})()
"""
"""1.4.3: contrast of words and their ground, at least 4.5 to 1, large ones 3 to 1."""
